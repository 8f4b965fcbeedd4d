"""Conversion of a script for another scheduler: directives from its request, edits of its body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jobgen.convert import (
    differences,
    directive_options,
    launch_nodes,
    leftovers,
    misreadings,
    request_reader,
    submission,
)
from jobgen.convert.request_reader import has_directives, line_of
from jobgen.convert.result import Converted, Definition, Edit, Remark, apply, hint, shown
from jobgen.convert.to_scheduler import (
    component_steps,
    host_order,
    launch_translation,
    own_scripts,
    request_writer,
    review,
    variables,
)
from jobgen.convert.to_scheduler.component_scripts import joined, scripts_of
from jobgen.convert.to_scheduler.mpirun_line import EXPORTS
from jobgen.convert.to_scheduler.srun_line import CONTAINER
from jobgen.convert.to_scheduler.start_lines import has_first_line, line_starts, start
from jobgen.errors import one_of
from jobgen.schedulers.base import key_of, matches, size
from jobgen.script.commands import Command
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions
from jobgen.values.parsers import mebibytes


def convert(script: Script, to: str) -> Converted:
    """Return the script of the same job for the scheduler ``to``: slurm, pbspro or torque."""
    source, target = DIALECTS[script.scheduler], DIALECTS[to]
    if target is source:
        return Converted(script.source.decode("utf-8", "replace"), ())
    parts, original = scripts_of(script), script
    script = joined(script, parts)
    content = request_reader.read(script, whole=True, totals=True)
    _gather(script, content, target)
    of_submission = list(submission.remarks(script, target, content))
    of_submission += submission.slots_of(script, target)
    head, remarks = _request(script, content, target) if has_directives(script) else ([], [])
    if len(parts) > 1:
        head, remarks = _requests(parts, content, source, target)
        remarks += component_steps.unread_ranks(script, parts) if target.scheduler.component_line else ()
    of_submission += submission.nodes_of(script, target, head) if content.default_nodes else ()
    body = [*_body(script, target, content), *review.switched_off(script, target)]
    remarks += [one for one in body if isinstance(one, Remark)]
    defined = [one for one in body if isinstance(one, Definition)]
    remarks += [*of_submission, *review.remarks(script, target, content, dict(defined))]
    edits = [one for one in body if isinstance(one, Edit)]
    if len(parts) > 1 and source.node_step != target.node_step:
        edits = component_steps.steps(script, content.components, edits, target)
        edits += component_steps.rest_of_steps(original) if original.components else ()
    end = (script.directives.first_command or len(script.lines) + 1) - 1
    head += [f"# not translated: {one.what}: {one.why}" for one in remarks if one.lost and one.line <= end]
    known = [*remarks, *(Remark(0, f"${name}", "") for name, _ in defined)]
    remarks += leftovers.remarks(script, target, edits, known)
    if any(EXPORTS in edit.text for edit in edits):
        head.append(f"# shellcheck disable=SC2046  # the words of $({EXPORTS})")
    added = [*start(script, target, content, defined, edits), *_first_line(script, target)]
    remarks += [one for one in added if isinstance(one, Remark)]
    edits += [one for one in added if isinstance(one, Edit)]
    text = _text(original, head, edits)
    if head and misreadings.reads_others(text, to):
        text = _text(original, [f"{target.scheduler.prefix} {target.ignores_others}", *head], edits)
    remarks += own_scripts.remarks(script, target, text)
    return Converted(text, tuple(sorted(set(remarks))))


def _text(script: Script, head: list[str], edits: list[Edit]) -> str:
    source = script.source.replace(b"\r\n", b"\n")
    return apply(source, [*edits, *_directives(script, head)]).decode("utf-8", "replace")


def _request(script: Script, content: ScriptRequest, target: Dialect) -> tuple[list[str], list[Remark]]:
    """Return the directives of a request, and the remarks on it."""
    source, remarks = script.dialect, list[Remark]()
    if source.family != target.family:
        _complete_whole_nodes(script, content)
    if request_reader.single_task(content, source, target):
        array = script.heeded[key_of(source.scheduler.request_forms["array"])]
        remarks.append(hint(array.line, f"the array {array.value}", "becomes a job that is no array"))
    extra = directive_options.write(content.directives, source, target, content.request.queue)
    common = _common(content, source, target)
    extra = extra._replace(chunk=extra.chunk + "".join(chunk for _, chunk in common.values()))
    head, lost = request_writer.write(content, source, target, extra)
    remarks += [Remark(line_of(script, one.field), one.what, one.why, one.lost) for one in lost]
    remarks += [Remark(one.option.line, one.part or one.text, why) for one, why in extra.lost]
    remarks += [hint(option.line, what, why) for option, what, why in content.unsure]
    if source.shell_option in script.heeded and target.shell_option:
        shell = script.heeded[source.shell_option]
        head.append(f"{target.scheduler.prefix} {target.shell_option} {shell.value}")
    for option, text, why in content.unconverted:
        opened = option.flag == "--open-mode" and "output" in content.script_logs  # by lines of the script
        if opened or text in source.of_no_job:
            continue
        if text in common:
            head += common[text][0]
        elif target.wait_directive and text.lower() == source.wait_directive.lower():
            head.append(f"{target.scheduler.prefix} {target.wait_directive}")
        elif target.copies_logs or not source.writes_log_in_place(text):
            boxed = CONTAINER.fullmatch(option.flag) is not None
            remarks.append(Remark(option.line, text, f"{why} in {target.title}", of_program=boxed))
    return head, remarks


def _common(content: ScriptRequest, source: Dialect, target: Dialect) -> dict[str, tuple[list[str], str]]:
    """Return the directives that the dialects of a family have in common: the lines of each for the target,
    and the text in the request of each node."""
    found: dict[str, tuple[list[str], str]] = {}
    for _, text, _ in content.unconverted if source.family == target.family else ():
        if source.umask_base and (mask := re.fullmatch(r"-W umask=([1-7][0-7]*)", text)):
            found[text] = [f"{target.scheduler.prefix} -W umask=0{int(mask[1], source.umask_base):o}"], ""
        if not matches(source.common_directives, text):
            continue
        key, _, value = text.partition("=")
        if key not in target.scheduler.keys.refused_beside:
            found[text] = [f"{target.scheduler.prefix} {text}"], ""
        elif total := mebibytes(value, "b"):
            nodes = content.request.nodes or content.request.ranks or 1
            found[text] = [], f":{key.removeprefix('-l ')}={size(-(-total // nodes), 'b')}"
    return found


def _requests(
    parts: Sequence[Script], content: ScriptRequest, source: Dialect, target: Dialect
) -> tuple[list[str], list[Remark]]:
    """Return the directives of a job with components, and the remarks on them; set the components."""
    content.components = [one.request for one in parts]
    heads, remarks, mem = [], list[Remark](), None
    for part in parts:
        if source.component_words and part.request.mem is None:
            part.request.mem = mem  # of the component before
        mem = part.request.mem
        head, found = _request(part, request_reader.read(part, whole=True, totals=True), target)
        heads.append(head)
        remarks += found
    for one in (source, target):
        if one.scheduler.behaviour.hosts_by_core:
            why = f"the pbs_sched of {one.title} often lists the last one first: rank 0 is then there"
            remarks.append(hint(parts[0].directives.first, "the order of the nodes", why))
    return component_steps.request_lines(heads, target), list(dict.fromkeys(remarks))


def _gather(script: Script, content: ScriptRequest, target: Dialect) -> None:
    """Request one node for tasks without nodes that no launcher starts, if each would become a node."""
    request = content.request
    each = target.scheduler.behaviour.hosts_by_core and not script.dialect.scheduler.behaviour.hosts_by_core
    counted = script.dialect.origin(script.heeded, "ranks")
    if not each or request.nodes or script.components or (request.ranks or 1) == 1 or counted is None:
        return
    if script.dialect.scheduler.keys.nodes in script.heeded or not own_scripts.alone_on_nodes(script):
        return
    request.nodes, request.ranks_per_node = 1, request.ranks
    request.mem = request.mem and request.mem * (request.ranks or 1)
    why = "no launcher starts them on other nodes: one node is requested"
    content.unsure.append((counted.option, counted.text, why))


def _complete_whole_nodes(script: Script, content: ScriptRequest) -> None:
    """Set the devices of whole nodes of a known site, and note a request of chunks that names no cores."""
    request, chunks = content.request, launch_nodes.chunk_option(script)
    chunk = request.chunks[0] if len(request.chunks) == 1 else {}
    unknown = {text.partition("=")[0]: (option, text) for option, text, _ in content.unconverted}
    sites = launch_nodes.sites_of_whole_nodes(script, unknown.keys())
    place = next((unknown[key] for one in sites for key in one.file.mandatory if key in unknown), None)
    parallel = script.launches or launch_nodes.OF_CORES.search(script.tree.text)
    alone = not (request.several or any(chunk) or parallel)
    of_queue = script.site_of_whole_nodes if chunks and not (sites or request.exclusive) else ""
    if of_queue:
        request.exclusive = True
        why = f"is for {of_queue}, which gives whole nodes: these are requested"
    elif sites:
        gpus = sites[0].file.node.gpus
        why = f"{sites[0].title} gives whole nodes" + f", of {gpus} GPUs" * bool(gpus)
        if len(sites) == 1:
            request.gpus_per_node, request.exclusive = request.gpus_per_node or gpus or None, True
        else:
            titles = one_of(one.title for one in sites)
            more = "" if request.gpus_per_node else " and --gpus-per-node"
            why = f"is for {titles}, which gives whole nodes: add --exclusive{more}"
    elif not chunk or alone or {"ncpus", "ppn"} & set(chunk) or request.cpus_per_rank:
        return
    elif request.gpus_per_node:
        why = "names no cores: if the site gives some with each GPU, add --cpus-per-task"
    elif request.exclusive:
        why = "names no cores: if the nodes have GPUs, add --gpus-per-node"
    else:
        why = "names no cores: if the site gives whole nodes, add --exclusive and --gpus-per-node"
    if found := chunks or place:
        content.unsure.append((*found, why))


def _directives(script: Script, head: list[str]) -> list[Edit]:
    """Return edits that put the new directives at the first old one or the top, and remove the old ones."""
    starts, live = line_starts(script), script.directives.live
    text = "".join(f"{line}\n" for line in head)
    if not live:
        at = starts[1] if has_first_line(script) else 0
        return [Edit(at, at, text)]
    edits = [Edit(starts[one.number - 1], starts[one.last], "") for one in live]
    return [edits[0]._replace(text=text), *edits[1:]]


def _first_line(script: Script, target: Dialect) -> Iterator[Edit | Remark]:
    """Yield the first line that a scheduler demands, and a remark on one that is not there."""
    if has_first_line(script) or target.needs_shebang == script.dialect.needs_shebang:
        return
    if not target.needs_shebang:
        refusal = f"has no #!: {script.dialect.title} refuses the script"
        yield hint(1, "the first line", f"{refusal}, {target.title} runs it with the login shell")
    else:
        given = (one.value for one in script.options if one.flag == script.dialect.shell_option)
        shell = next(given, "/bin/bash")
        yield Edit(0, 0, f"#!{shell}\n")
        family = script.dialect.family
        why = f"is added: {target.title} requires a first line with the shell, {family} does not"
        yield hint(1, f"#!{shell}", why)


def _body(script: Script, target: Dialect, content: ScriptRequest) -> list[Edit | Remark | Definition]:
    source = script.dialect
    found: list[Edit | Remark | Definition] = list(launch_translation.launches(script, target))
    replaced_nodes = _host_lists(script)
    found += [Edit(node.start, node.end, target.hosts) for node in replaced_nodes]
    found += host_order.remarks(script, replaced_nodes, target)
    jobs = [command.node for command in script.named(*source.show_job[:1]) if _shows_job(command, source)]
    found += [Edit(node.start, node.end, " ".join(target.show_job)) for node in jobs]
    if source.show_job != target.show_job:
        why = f"becomes {' '.join(target.show_job[:-1])}, which prints other lines"
        found += [hint(node.line, shown(node), why) for node in jobs]
    replaced_nodes += jobs
    if node_file := target.variable("node_file"):
        listed = [one.node for one in script.named(*source.node_file_commands) if not one.arguments]
        found += [Edit(node.start, node.end, f'echo "${node_file}"') for node in listed]
        replaced_nodes += listed
    commands = differences.commands(script, target)
    found += [remark for command, remark in commands if command.node not in replaced_nodes]
    found += variables.unprefixed(script, target)
    of_nodes = list(variables.names_of_nodes(script, target, replaced_nodes))
    replaced: list[Node | Edit] = [*replaced_nodes, *(one for one in of_nodes if isinstance(one, Edit))]
    of_array = bool(script.request.array) or content.index_later
    return [*found, *of_nodes, *variables.translate(script, target, replaced, of_array)]


def _host_lists(script: Script) -> list[Node]:
    """Return the commands that print the hosts of the job."""
    source = script.dialect
    lists = {name for name, meaning in source.job_variables.items() if meaning == "node_list"}
    for name, value, _ in script.assignments:
        if len(script.values[name]) == 1 and value.text.strip('"${}') in lists:
            lists.add(name)
    found = (one for one in script.named(*source.host_list[:1]) if _lists_hosts(one.literals, source))
    return [one.node for one in found if lists.issuperset(name for name, _ in expansions(one.node))]


def _shows_job(command: Command, source: Dialect) -> bool:
    """Return whether a command prints this job, and nothing reads what it prints."""
    words = [*source.show_job[:1], *command.literals]
    ids = {name for name, meaning in source.job_variables.items() if meaning == "job_id"}
    read = command.node.under("pipeline", "command_substitution", "redirected_statement")
    last = command.words[-1].text.strip('"${}')
    return not read and tuple(words) == source.show_job[:-1] and last in ids


def _lists_hosts(words: Sequence[str], source: Dialect) -> bool:
    """Return whether the words are those of the command, which may be abbreviated."""
    content = source.host_list[1:]
    pairs = list(zip(content, words, strict=False))
    return len(pairs) == len(content) and all(len(word) > 3 and full.startswith(word) for full, word in pairs)
