"""Rules about variables of bash: those of another scheduler, without quotes, without a value, or misspelt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from functools import cache, lru_cache
from itertools import islice

from jobgen.check.ranks.addresses import EXPANSIONS
from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.rules.directories import stays
from jobgen.check.rules.shell_and_paths import plain_sh
from jobgen.errors import nearest
from jobgen.script import command_kinds
from jobgen.script.beside import sourced
from jobgen.script.commands import Command, commands
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.other_text import has_gap
from jobgen.script.script import Edit, Hit, Script
from jobgen.script.syntax import LATER, LOOPS, Node, expansions, is_plain, literal, uses


@rule(
    "foreign-variable",
    ERROR,
    "A variable of another scheduler",
    """Torque sets `PBS_NP`, `PBS_NUM_PPN`, `PBS_GPUFILE` and `PBS_ARRAYID`; PBS Pro does not, and has
    `PBS_ARRAY_INDEX` for arrays. Slurm sets none of PBS's variables, and PBS none of Slurm's. (A variable
    with a default, as in `${PBS_ARRAYID:-0}`, and one under an `if` or a `case` are not reported: such a
    script may be for several schedulers. A note are a variable that the script only prints, and a script with
    variables of Slurm alone: sbatch reads `#PBS`, too. A warning is one that some sites set, such as `PBS_NUM_PPN`
    (silent in a script with MetaCentrum's resources), one in a script that does not show for which of the two it is, and a
    `cd` to the directory of the submission before commands with absolute paths alone, which goes to the home directory.)""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    #PBS -J 0-9
    /opt/site/solver --index "$PBS_ARRAYID"
    """,
    good={'/opt/site/solver --index "$PBS_ARRAYID"': '/opt/site/solver --index "$PBS_ARRAY_INDEX"'},
)
def foreign_variable(script: Script) -> Iterator[Hit]:
    seen: set[str] = set()
    own = {name for name, _, _ in script.assignments}
    foreign = script.dialect.foreign_variables if script.is_batch else {}
    reads = sorted([*script.expansions, *_in_arithmetic(script)], key=lambda one: one[1].start)
    printed = {name for name, _ in reads} - {
        name for name, node in reads if not is_printed(node) or node.under("command_substitution")
    }
    for name, node in reads:
        prefixed = name.startswith(script.dialect.foreign_prefixes)
        safe = node.type == "expansion" and any(sign in node.text for sign in (":-", ":+", "-", "+", ":="))
        inside = next(expansions(node), ("", node))[1] is not node or node.under(*_CHOICES)
        if name in own or name in seen or safe or inside or not (prefixed or name in foreign):
            continue
        if _is_tested(node, name):
            continue
        if name in script.dialect.local_variables and re.search(script.dialect.local_words, script.tree.text):
            continue
        seen.add(name)
        if not node.under("expansion"):
            unsure = name in foreign and (name in script.dialect.local_variables or not script.is_sure)
            meaning = next(
                (one.job_variables[name] for one in DIALECTS.values() if name in one.job_variables), ""
            )
            counterparts = map(script.dialect.variable, (meaning, _NEAR.get(meaning, "")))
            counterpart = next(filter(None, counterparts), "PBS_* variables, or write the value")
            unsure = unsure or (meaning == "submit_dir" and _is_left(script, name, node))
            level = NOTE if script.for_another_scheduler or name in printed else WARNING if unsure else None
            reason = f"{script.dialect.title} does not set {name}"
            yield Hit.at(node, reason, f"use {foreign.get(name, counterpart)}", level)


def _is_left(script: Script, name: str, node: Node) -> bool:
    """Return whether a variable is only in a cd, and no command behind it has a relative path, or Python's -m."""
    later = [one for one in script.commands if one.node.start > node.start]
    inside = node.around("command")
    if inside is None or inside.name != "cd" or sum(one == name for one, _ in script.expansions) > 1:
        return False
    words = [word for one in later for word in one.words[bool(one.arguments) :]]
    words += [one for one in script.tree.all("file_redirect") if one.start > node.start]
    texts = [script.constants.text(word).strip("<>&12 \"'") for word in words]
    return any(text.startswith("/") for text in texts) and not any(map(_RELATIVE.match, texts))


_RELATIVE = re.compile(r"\$|-m$|(?!/|-)\S*[./*]|[^/]*=(?![/\d])")  # or unknown


def _in_arithmetic(script: Script) -> Iterator[tuple[str, Node]]:
    """Yield the variables that arithmetic reads without ``$``."""
    places = [*script.tree.all("arithmetic_expansion")]
    places += [one for one in script.tree.all("compound_statement") if one.text.startswith("((")]
    for place in places:
        for node in place.all("variable_name"):
            if not node.under("simple_expansion", "expansion"):
                yield node.text, node


_NEAR = {"cpus_per_rank": "cpus_per_chunk"}  # another meaning that has the same value in most jobs


def _is_tested(node: Node, name: str) -> bool:
    """Return whether a variable is in a test, or runs only if a test of it is true: ``[ -n "$A" ] && cd "$A"``."""
    part, found = node.around("list"), node.under("test_command")
    for _ in range(_TESTS):
        if found or part is None or part.type not in ("list", "test_command"):
            break
        tests = [one for one in (part, *part.children) if one.type == "test_command"]
        found = any(name == read for test in tests for read, _ in expansions(test))
        part = part.children[0] if part.type == "list" else None
    return found


_TESTS = 5  # commands of a list in front of another one
_EDITS = r"(sed|awk|gawk|grep|egrep|perl|tr|expr)\b"  # programs that get expressions
_NO_PATHS = ("module", "ml", "echo", "printf", "mail", "mailx", "ssh", "rsh", "pdsh")  # ssh joins its words
_CHOICES = ("if_statement", "case_statement", "function_definition", "heredoc_body")
_PATHS = (
    "cd", "pushd", "mkdir", "rm", "rmdir", "cp", "mv", "ln", "touch", "source", ".", "tar", "chmod",
    "rsync",
)  # fmt: skip


@rule(
    "unquoted-path",
    NOTE,
    "A path without quotes",
    """Without quotes a path with a blank becomes two words, and an empty one disappears: `rm -rf $dir/*`
    becomes `rm -rf /*`. Only places where a path is expected are reported, because options in a variable
    are often meant to be several words, and no identifiers in the names of files, as in `run_$x.txt`. (The directories of a site and of its modules, such as `$SCRATCH` and
    `$CUDA_HOME`, have no blanks: they are not reported unless the script sets them, nor is a variable from outside that is not called a path, the home directory, where
    jobs of PBS start, and a list of files that `ls` prints. Nor is a `cd` to the directory where the job is: if it fails, nothing changes. In a script of `sh` a redirection is not split.)""",
    bad="""
    #!/bin/bash
    #PBS -l select=1:ncpus=8
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd $PBS_O_WORKDIR
    hostname
    """,
    good={"cd $PBS_O_WORKDIR": 'cd "$PBS_O_WORKDIR"'},
    style=True,
    fix="write them in double quotes",
    summary="without quotes a blank in a variable splits the path",
)
def unquoted(script: Script) -> Iterator[Hit]:
    found = [
        (name, node)
        for name, node in script.expansions
        if re.match(r"[A-Za-z_]", name)
        and "[@]" not in node.text
        and _is_path(node)
        and not _is_in_name(node)
        and not re.search(r"ADDR|HOST|NODE|URL|_IP$", name)
    ]
    modules, homes = _of_modules(script), _fixed_places(script)
    split = {name for name in dict(found) if _may_split(script, name, modules, homes)}
    cds = () if script.errexit else script.named("cd", "pushd")
    idle = {one.node.start for one in cds if stays(script, one)}  # the job goes on where it is
    posix = plain_sh(script)
    for name, node in found:
        if (posix and _is_redirection(node)) or _is_of_list(script, name, node):
            continue  # sh does not split what is behind > or <
        if name == "PWD" and _is_at(node, homes):
            continue
        stays_there = any(above.start in idle for above in node.above() if above.type == "command")
        if name in split and not stays_there:
            reason, fix = (
                f"without quotes a blank in ${name} splits the path",
                f'write "${name}" in double quotes',
            )
            edit = Edit(node.start, node.end, f'"{node.text}"'.encode())
            yield Hit.at(node, reason, fix, edits=() if _in_backquotes(node) else (edit,))


def _is_redirection(node: Node) -> bool:
    """Return whether an expansion is the file of a redirection, or a part of its name."""
    above = node.around("command", "file_redirect", "command_substitution")
    return above is not None and above.type == "file_redirect"


def _fixed_places(script: Script) -> list[tuple[int, int]]:
    """Return the parts of the script whose working directory has no blank: the home directory, where the jobs of some
    schedulers start, and a fixed one, if the script changes to no other one."""
    moves = [one.node for one in script.named("cd", "pushd", "popd")]
    end = len(script.tree.source)
    moved = any(script.options_of(*script.dialect.directory_options))
    home = [(0, moves[0].start if moves else end)] if script.dialect.starts_at_home and not moved else []
    fixed = len(moves) == 1 and re.fullmatch(r"(?:cd|pushd) +/[\w./-]*", moves[0].text)
    alone = fixed and not moves[0].under(*LATER, "subshell")
    return [*home, (moves[0].end, end)] if alone else home


def _is_at(node: Node, places: Iterable[tuple[int, int]]) -> bool:
    """Return whether a part of the script itself is in one of its places."""
    return any(start <= node.start < end for start, end in places) and not node.under("function_definition")


def _of_modules(script: Script) -> set[str]:
    """Return the variables of programs, and those with the name of a module, if the script loads any."""
    if not _loads(script):
        return set()
    words = (word for one in script.named("module", "ml") for word in one.literals)
    loaded = {re.sub(r"\W", "", word.partition("/")[0]).upper() for word in words}
    return {
        name
        for name, node in script.expansions
        if node.under("command_name") or name.partition("_")[0] in loaded
    }


def _is_of_site(script: Script, name: str, modules: Set[str]) -> bool:
    """Return whether a variable is one of those that a site or a module sets, by its name."""
    ours = re.match(r"(PBS|SLURM)_|(OLD)?PWD$|HOST", name)
    if ours is not None or name in script.values or name != name.upper():
        return False
    return name in modules or re.fullmatch(_OF_SITE, name) is not None


def _is_of_list(script: Script, name: str, node: Node) -> bool:
    """Return whether a variable has a word of the list of a loop around it."""
    around = (above for above in node.above() if above.type in LOOPS)
    loop = next(
        (one for one in around if (bound := one.get("variable")) is not None and bound.text == name), None
    )
    return loop is not None and not any(value in loop for value in script.values.get(name, ()))


def _in_backquotes(node: Node) -> bool:
    """Return whether quotes around an expansion would end a string."""
    inner = [above for above in node.above() if above.type == "command_substitution"]
    return any(above.text.startswith("`") and above.under("string") for above in inner)


# Names whose values have no blanks: those of schedulers except directories, and numbers, identifiers and dates.
_UNSPLIT = re.compile(
    r"g\d\droot|HOME|USER|LOGNAME|HOSTNAME|(?:\w*_)?TMPDIR|(?:\w*_)?SCRATCH(?:DIR)?|WORK|\w*CCFR(?:WORK|SCRATCH|STORE)|RANDOM|UID|SECONDS|NCPUS|SLURM_(?!SUBMIT_DIR|JOB_NAME)\w+|PBS_(?!O_|JOBDIR)\w+|"
    r"PBS_O_(?:HOME|HOST|LOGNAME|QUEUE)|STOCKYARD|(?i:\w*_HASH)|OMP_NUM_THREADS|(?:LOCAL_)?RANK|WORLD_SIZE|(?i:(?:\w*_)?(?:(?:job|task|run|array|sample)_?(?:id|name)|p?pid|"
    r"id|num|nodes|n?tasks|n_?samples|count|seed|rank|size|idx|index|iter|step|epoch|ver(?:sion)?|year|month|day|date|time|"
    r"port|np|n?procs?|threads|[cg]pus|level|fold|user(?:_?name)?)\d?)"
)


def _is_path(node: Node) -> bool:
    """Return whether the shell splits the result of this expansion into words where it expects a path."""
    word = node
    while word.parent is not None and word.parent.type == "concatenation":
        word = word.parent
    parent = word.parent
    if parent is None or parent.type not in ("command", "command_name", "file_redirect"):
        return False
    edits = parent.type == "command" and re.match(_EDITS, parent.text)
    if edits and re.match(r"'|\"?(s|y|tr)?[/|#@,{$^]", word.text):
        return False  # an expression
    if word.type == "concatenation" and "/" in word.text and "=" not in word.text.partition("/")[0]:
        return parent.name not in _NO_PATHS and "://" not in word.text
    if parent.type == "file_redirect":
        return parent.line == word.line  # behind a > at the end of a line is none
    return parent.type == "command" and word.field != "name" and parent.name in _PATHS


def _is_in_name(node: Node) -> bool:
    """Return whether a variable is only a part of the name of a file, as in ``run_$x``, ``a/$x.txt``: an identifier."""
    word = node.parent
    if word is None or word.type not in ("concatenation", "string"):
        return False
    before = node.source[max(word.start, node.start - _LONGEST) : node.start].decode(errors="replace")
    letters = re.search(r"(\$?)\w+$", before)
    joined = not letters[1] if letters else before.endswith((".", "-"))
    after = node.source[node.end : min(word.end, node.end + _LONGEST)]
    in_folder = before.endswith("/") and re.match(rb"[._-]*[A-Za-z]", after) is not None
    return in_folder or (joined and not before.startswith("-"))


# Names of variables that have the path of a folder or a file, which may be any.
_OF_PATH = re.compile(
    r"(?i)dir|path|folder|file|root|home|base|prefix|repo|src|source|data(?!_?set)|(?:^|_)in(?:put)?s?$|input|out(?:put)?s?\d*$|"
    r"output|result|(?:^|_)work|project|log|save|target|dest|wd|loc(?:ation)?$|env|^[df]$"
)
# Commands whose output has no blanks, if their input has none.
_WORDS = (
    "seq", "expr", "nproc", "hostname", "whoami", "mktemp", "uuidgen", "bc", "wc", "id", "cut", "awk",
    "printf", "basename", "dirname",
)  # fmt: skip
_BLANKS = re.compile(r"\bs(.) \1[^ ]\1|\btr +['\"](?: |\[:(?:space|blank):\])")  # what replaces the blanks


def _may_split(script: Script, name: str, modules: Set[str], homes: Iterable[tuple[int, int]]) -> bool:
    """Return whether a variable may have a value with blanks: by its name, or by all its values. One that the script does
    not set is a path by its name, or a word that selects something; an argument is so by the name of its variable."""
    todo, seen = [name], {name}
    while todo:
        one = todo.pop()
        values = script.values.get(one, [])
        if (
            _UNSPLIT.fullmatch(one)
            or (one in script.loop_variables and not values)
            or any(map(_is_counter, values))
            or any(map(_is_list, values))
            or _is_of_site(script, one, modules)
        ):
            continue
        if all(uses(value, one) for value in values):
            names = seen if re.match(r"\W|\d", one) else {one}
            if any(map(_OF_PATH.search, names)):
                return True
        elif not all(_is_one_word(script, value, homes) for value in values):
            return True
        found = (pair for value in values for pair in expansions(value))
        parts = {
            other
            for other, node in found
            if not (node.under("subscript") or _is_split(node) or _is_in_name(node))
        }
        inner = parts - seen
        seen |= inner
        todo += inner
    return False


def _is_counter(value: Node) -> bool:
    """Return whether a value is the first number of a loop: ``for ((i = $1; i < 9; i++))``."""
    loop = next(islice(value.above(), 1, None), None)  # around its assignment
    return loop is not None and loop.type == "c_style_for_statement"


def _is_list(value: Node) -> bool:
    """Return whether a value is a text of several words or a pattern, which the shell has to expand, or a list of files."""
    last = _last(value) if value.type == "command_substitution" else None
    if last is not None and last.name in ("ls", "find"):
        return True
    text = literal(value) if value.type != "array" else None
    return text is not None and re.search(r"\S\s+\S|[*?\[]", text) is not None and not has_gap(text)


def _is_one_word(script: Script, value: Node, homes: Iterable[tuple[int, int]]) -> bool:
    """Return whether a value has no blank or pattern but those that its variables may have."""
    if value.type == "array":
        items = (one for one in value.children if one.type not in ("(", ")", "command_substitution"))
        return all(
            _is_one_word(script, item, homes) for item in items
        )  # the words that a command prints are items
    if (text := literal(value)) is not None:
        return not re.search(r"[\s*?\[]", text.replace("???", ""))  # which is to be filled in
    rest = value.text
    for part in value.all(*EXPANSIONS):
        if part.type == "command_substitution":
            last = _last(part)
            at_home = part.text in ("$(pwd)", "`pwd`") and _is_at(part, homes)
            prints = last is not None and (last.name in script.functions or _prints_word(last))
            if not (_BLANKS.search(part.text) or _keeps_word(part) or at_home or prints):
                return False
        rest = rest.replace(part.text, "", 1)
    return not re.search(r"[\s*?\[]", rest.strip("\"'"))


def _last(substitution: Node) -> Command | None:
    """Return the last command of a substitution, whose output is its value."""
    own = [one for one in commands(substitution) if one.node.parent in (substitution, *substitution.children)]
    return own[-1] if own else None


def _keeps_word(substitution: Node) -> bool:
    """Return whether the output of a substitution has no blanks, if the only word that it prints or filters has none."""
    first, *filters = commands(substitution)
    words = [word.text for word in first.arguments]
    plain = not any(re.search(r"\s", word.text) for one in filters for word in one.arguments)
    return (
        first.name == "echo"
        and len(words) == 1
        and plain
        and _FILTERS.issuperset(one.name for one in filters)
    )


_FILTERS = frozenset(("sed", "tr", "cut", "rev", "basename", "dirname"))


def _is_split(node: Node) -> bool:
    """Return whether a node is in a substitution that is a field of a line or a number, whatever its input is, or one
    that is split into the items of an array."""
    around = [one for one in node.above() if one.type == "command_substitution"]
    fields = (last for one in around if (last := _last(one)) is not None and _FIELD.match(last.node.text))
    return any(fields) or any(one.parent is not None and one.parent.type == "array" for one in around)


_FIELD = re.compile(
    r"g?awk (?!.*(?:-F|FS)).*'[^{}']*\{ *print \$(?:[1-9]\d*|NF);? *\}'|"
    r"printf [\"']?(?:[\w./-]*%0?\d*d)+[\w./-]*[\"']? |(?:seq|expr|nproc|wc|bc)\b"
)


def _prints_word(command: Command) -> bool:
    if command.name == "date":
        return not re.search(r"\s", "".join(command.literals)) and bool(command.arguments)
    return command.name in _WORDS


@rule(
    "unset-variable",
    WARNING,
    "A variable that is not set",
    """A variable that is not set is empty, without a message. Only lower-case names are reported, which no
    scheduler, site or module sets, and only in scripts that load no module and source no file but those beside
    them, which are read. `set -u` finds the others when the job runs. (It is a note if only messages have it, and
    if no similar name is set, as the submission may give it.)""",
    fix="correct the name, or set it",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    workdir=/scratch/project
    cd "$work_dir"
    """,
    good={'cd "$work_dir"': 'cd "$workdir"'},
)
def unknown_variable(script: Script) -> Iterator[Hit]:
    if not script.is_batch or _loads(script):
        return  # misspelt-variable reports those that are near others
    # By the text, too: the tree leaves out what has a syntax error.
    written = re.findall(r"(?m)^\s*(\w+)(?:\[[^]]*\])?\+?=", script.tree.text)
    elements = (node.name for node in script.tree.all("subscript") if node.field == "name")
    known = {*_set_names(script), *written, *elements}
    for name, node in script.expansions:
        if (
            not re.fullmatch(r"[a-z_][a-z0-9_]*", name)
            or name in known
            or node.under("unset_command")
            or name == "_"
            or name.endswith(("_proxy", "proxy"))
        ):
            continue
        if node.type == "expansion" and re.search(r"[:+?=-]", node.text[2 + len(name) :]):
            continue
        known.add(name)
        hint = nearest(name, islice(_assigned(script), 200), cutoff=0.75)
        assigns = re.match(r"\$\w+=", node.parent.text if node.parent is not None else "")
        typo = hint or assigns
        takers = (above.name for above in node.above() if above.type == "variable_assignment")
        takes = any(re.search(rf"\b{re.escape(one)}\b", hint) for one in takers if one)  # sshkey=$ssh_key
        if script.is_template or (hint and takes):
            typo = None
        where = "" if typo else " in this script: unless the submission sets it,"
        level = None if typo and not _is_only_printed(script, name) else NOTE
        reason, fix = f"${name} is not set{where or ':'} it is empty{hint}", ""
        if assigns:
            reason = f"${name}= is no assignment, but a command that does not exist: {name} stays empty"
            fix = f"write {name}= without the dollar sign"
        yield Hit.at(node, reason, fix, level)


def _is_only_printed(script: Script, name: str) -> bool:
    """Return whether a variable is only in messages."""
    return all(command_kinds.is_printed(node) for other, node in _reads(script) if other == name)


# Commands that set the variables that they name, and those that may set any.
_READERS = ("read", "mapfile", "readarray", "printf", "getopts", "let", "unset", "local", "declare", "export")
_LOADERS = ("eval", "module", "ml", "conda", "spack")
_LONGEST = 40  # letters of a name that is compared
# Variables that the system, a scheduler or a site sets.
_OUTSIDE = (
    r"(SLURM|SBATCH|SRUN|PBS|MOAB|PMI|OMPI|MPI|CUDA|NCCL|OMP|LD|LC|BASH|XDG|SINGULARITY|APPTAINER|CONDA|LMOD|DW|BB)_?.*"
    r"|(VSC|SNIC|BC|NERSC|TACC|RZG|SLATE|IDRIS)_.*|.*_TMP"
    r"|(HOME|USER|LOGNAME|E?UID|PPID|O?L?D?PWD|SHELL|HOST(NAME|TYPE)?|NCPUS|TMP|TEMP|LANG|TERM|DISPLAY|RANDOM|SECONDS|LINENO)"
    r"|(GROUPS|FUNCNAME|PIPESTATUS|IFS|OSTYPE|MACHTYPE|OPTARG|OPTIND|REPLY|COLUMNS|LINES|SHLVL|EPOCH(SECONDS|REALTIME)|MAIL|EDITOR|PS\d|NPROCS)"
    r"|.*(PATH|SCRATCH|WORK|STORE|PROJ|HOME|ROOT|PROXY|TMPDIR|LOCAL|CLUSTER|GROUP|ARCH|SITE).*|.*_proxy"
)


_OF_SITE = rf"{_OUTSIDE}|.*(DIR|DIRECTORY|_PREFIX|_BASE|_DATA)|EBROOT\w*|GMX(BIN|DATA|LIB)"


def _assigned(script: Script) -> list[str]:
    """Return the names that the script assigns, or a file that it sources."""
    return list(dict.fromkeys([*script.values, *(name for one in sourced(script)[0] for name in one.values)]))


def _set_names(script: Script) -> set[str]:
    """Return the names of all variables that the script sets or may set, or a file that it sources."""
    read_files = [name for one in sourced(script)[0] for name in _set_names(one)]
    words = (word.text for command in script.named(*_READERS) for word in command.arguments)
    read = {name for word in words for name in re.findall(r"[A-Za-z_]\w*", word)}
    declared = script.tree.all("variable_name")
    own = {
        node.text for node in declared if not (node.under("simple_expansion", "expansion") or _is_read(node))
    }
    texts = (one.node.text for one in script.named("eval"))
    evaluated = {name for text in texts for name in re.findall(r"\b([A-Za-z_]\w*)=", text)}
    return {*script.values, *script.loop_variables, *read, *own, *evaluated, *read_files}


def _is_read(node: Node) -> bool:
    """Return whether a name is in an arithmetic expansion that sets nothing, as in ``$((NODES * 4))``."""
    place = node.around("arithmetic_expansion")
    return place is not None and re.search(r"\+\+|--|[^=!<>]=[^=]", place.text) is None


@lru_cache(maxsize=4)
def _reads(script: Script) -> list[tuple[str, Node]]:
    """Return all reads of variables, in arithmetic and in an index without ``$``, too."""
    bare = [(name, node) for name, node in _in_arithmetic(script) if _is_read(node)]
    if re.search(r"\b(declare|typeset|local)\s+-\w*A", script.tree.text) is None:  # whose index is a text
        words = (one.get("index") for one in script.tree.all("subscript"))
        bare += [(one.text, one) for one in words if one is not None and one.text.isidentifier()]
    return [*script.expansions, *bare]


def _uses(script: Script) -> Iterator[tuple[str, Node]]:
    """Yield the first use of each variable that must have a value: without a default, and not in a test."""
    tests = script.tree.all("test_command", "case_statement")
    seen = {name for node in tests for name, _ in expansions(node)}
    for name, node in _reads(script):
        plain = is_plain(node)  # not ${NAME:-default}, ${NAME:?}, or an array
        if name not in seen and (not plain or re.fullmatch(r"[A-Za-z]\w+", name)):
            seen.add(name)
            if plain:
                yield name, node


class _Names:
    """Names of variables by their forms, to find one that is almost the same."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_form: dict[str, str] = {}
        ordered = sorted(sorted(names, reverse=True), key=lambda name: name.count("_"))
        for name in ordered:
            self._by_form |= dict.fromkeys(_forms(name), name)
        self._by_form |= {_plain(name): name for name in ordered}  # a whole name before one without a letter

    def near(self, name: str) -> str | None:
        """Return the name that differs only in case or underscores, or in one letter of a long name."""
        found = self._by_form.get(_plain(name))
        if found is None or _plain(found) != _plain(name):
            found = next((self._by_form[form] for form in _forms(name) if form in self._by_form), None)
        return found


_names_of_jobs = cache(_Names)  # those of the variables that a scheduler sets in a job


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _forms(name: str) -> list[str]:
    """Return a long name without each of its letters but the first: two with a common form differ in one letter.

    A short name has its letters in order: two with a common form differ in the order.
    """
    plain = _plain(name)
    if 3 < len(plain) < 6 and plain.isalpha():
        return [plain, f"{plain[0]} {''.join(sorted(plain[1:]))}"]
    if not 5 < len(plain) < _LONGEST or re.search(r"\d", plain):
        return [plain]
    return [plain, *(f"{plain[:at]}{plain[at + 1 :]}" for at in range(1, len(plain)))]


def _loads(script: Script) -> bool:
    """Return whether the script runs what may set variables that cannot be read: modules, and other files."""
    return any(script.named(*_LOADERS)) or bool(sourced(script)[1])


def _reads_others(script: Script) -> bool:
    """Return whether the script runs text that may set any variable, besides a module or an environment."""
    known = (
        r".*(activate|conda\.sh|modules?(\.sh)?|bashrc|profile|lmod\S*|/etc/\S*|setvars\.sh|GMXRC\S*)[\"']?"
    )
    read, others = sourced(script)
    evals = [one.node.text for each in (script, *read) for one in each.named("eval")]
    return not all(re.fullmatch(known, text) for text in others) or any("hook" not in text for text in evals)


@rule(
    "misspelt-variable",
    WARNING,
    "A variable with a name that is set nowhere",
    """A misspelt variable is empty, without a message. Names are case-sensitive: `$Nodes` is not `$NODES`.
    `set -u` ends the script instead. A name that is almost that of a variable of the scheduler is reported,
    too. (It is a note if only messages or, for a variable of the scheduler, tests have it, or `scontrol show hostnames`, which takes the nodes of the job
    without an argument. Lower-case names without a similar one are the matter of
    `unset-variable`.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    OUTPUT_DIR=/scratch/project/results
    mkdir -p "$OUTPUT_DIR"
    srun python3 train.py --output "$OUTPUTDIR"
    """,
    good={'srun python3 train.py --output "$OUTPUTDIR"': 'srun python3 train.py --output "$OUTPUT_DIR"'},
)
def misspelt(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    known = _set_names(script)
    yield from _misspelt_of_job(script, known)
    may_set = _reads_others(script)  # then only a variable that nothing reads is certainly meant
    used, loads = Counter(name for name, _ in _reads(script)), _loads(script)
    own = set(_assigned(script))
    unused, names = _Names(own - used.keys()), _Names(own)
    for name, node in _uses(script):
        if name in known or re.fullmatch(_OUTSIDE, name) or (may_set and used[name] > _SLIPS):
            continue
        meant = unused.near(name) or (None if may_set else names.near(name))
        around = [above.text for above in node.above() if above.type == "variable_assignment"]
        derived = (re.search(rf"\$\{{?{name}\b", one.text) for one in script.values.get(meant or "", ()))
        if meant is None or any(text.startswith(f"{meant}=") for text in around) or any(derived):
            continue  # it is set from the variable of the outside
        if name != name.lower() or loads:
            level = NOTE if _is_only_printed(script, name) else None
            yield Hit.at(node, f"${name} is set nowhere, only ${meant} is", _spelt(name, meant), level)


_SLIPS = 2  # uses of a misspelt name; one with more is set in the file that the script reads


def _misspelt_of_job(script: Script, known: set[str]) -> Iterator[Hit]:
    """Yield the variables that are almost those that the scheduler sets in a job."""
    dialect = script.dialect
    names = _names_of_jobs(dialect.environment)
    seen = {*known, *dialect.environment, *dialect.foreign_variables}
    for name, node in _reads(script):
        if name in seen or "_" not in name or name.startswith(dialect.foreign_prefixes):
            continue
        seen.add(name)
        if (meant := names.near(name) or dialect.meant(name)) is not None:
            level = NOTE if _has_no_effect(script, name) or _is_only_tested(script, name) else None
            yield Hit.at(node, f"{dialect.title} sets no ${name}, only ${meant}", _spelt(name, meant), level)


def _is_only_tested(script: Script, name: str) -> bool:
    """Return whether a variable is only in tests, which may be untrue with its right name, too."""
    return all(node.under("test_command") for other, node in _reads(script) if other == name)


def _has_no_effect(script: Script, name: str) -> bool:
    """Return whether a variable is only in messages, or in ``scontrol show hostnames``, which without an argument
    takes the nodes of the job."""
    uses = [node for other, node in _reads(script) if other == name and not _is_shown(node)]
    texts = (node.parent.text if node.parent is not None else "" for node in uses)
    return all(re.fullmatch(rf"scontrol\s+show\s+hostnames?\s+\$\{{?{name}\}}?", text) for text in texts)


def _is_shown(node: Node) -> bool:
    """Return whether a variable is only in a message, or in that of ``echo $(cat $FILE)``."""
    command = node.around("command")
    file = command is not None and command.name == "cat"
    inner = node.around("command_substitution") if file else None
    return command_kinds.is_printed(inner or node, {*command_kinds.PRINT, "cat"})


def _spelt(name: str, meant: str) -> str:
    """Return the fix of a name: in ``$NAME_$OTHER`` the underscore is a part of the name."""
    return f"write ${{{meant}}}_" if name == f"{meant}_" else f"write ${meant}"


@rule(
    "unchecked-variable",
    NOTE,
    "A variable from outside that is not checked",
    """A variable that the script does not set has to come from the shell that submits it, or from `--export`
    or `-v`. If it was forgotten, it is empty, and the job does something else. `${NAME:?}` or `set -u` ends
    the script instead. Only scripts that load nothing are read: a module may set any variable. (Templates are left
    out, and scripts whose directives have a variable: a program fills them in.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -eo pipefail
    srun python3 train.py --seed "$SEED"
    """,
    good={'srun python3 train.py --seed "$SEED"': 'srun python3 train.py --seed "${SEED:?}"'},
)
def unchecked(script: Script) -> Iterator[Hit]:
    if not script.is_batch or script.nounset or _loads(script) or _is_filled(script):
        return
    if (argument := _unchecked_argument(script)) is not None:
        number = argument.text.strip("${}")
        reason = f"the script does not check its argument {number}: without it, ${number} is empty"
        yield Hit.at(argument, reason, f"write ${{{number}:?}}")
    found = list(_unchecked(script))
    if found:
        (first, node), *others = found
        names = " and ".join([f"${name}" for name, _ in found])
        names = names if len(found) < 3 else f"${first} and {len(others)} other variables"
        verb, are = ("has", "it is") if len(found) == 1 else ("have", "they are")
        reason = f"{names} {verb} to be set outside of the script: otherwise {are} empty"
        yield Hit.at(node, reason, f"write ${{{first}:?}}")


def _is_filled(script: Script) -> bool:
    """Return whether a program fills in the variables: the script is a template, or its directives have some
    that it never assigns, as for envsubst."""
    used = (name for line in script.directives.live for name in re.findall(r"\$\{?([A-Za-z]\w*)", line.rest))
    outside = rf"{_OUTSIDE}|{'|'.join(script.dialect.environment)}"
    return (
        "{{" in script.tree.text
        or script.is_template
        or any(name not in script.values and not re.fullmatch(outside, name) for name in used)
    )


# An assignment at the beginning of a line, also where the value is a placeholder: A=<path>.
_SET = re.compile(r"(?m)^[ \t]*(?:export[ \t]+|readonly[ \t]+)?([A-Za-z_]\w*)=")


def _unchecked(script: Script) -> Iterator[tuple[str, Node]]:
    """Yield the variables that have to come from outside, each with its first use."""
    known, names = _set_names(script) | set(_SET.findall(script.tree.text)), _Names(_assigned(script))
    uses: dict[str, list[Node]] = {}
    for name, node in _reads(script):
        uses.setdefault(name, []).append(node)
    of_jobs = _names_of_jobs(script.dialect.environment)
    passed = {
        part.partition("=")[0] for option in script.options for part in option.value.split(",") if "=" in part
    }
    unused = set(re.findall(r"(?m)^\s*#+\s*(?:export\s+)?([A-Za-z_]\w*)=", script.tree.text))
    for name, node in _uses(script):
        if name in unused and node.under("heredoc_body"):
            continue  # an option of a namelist that is off
        if of_jobs.near(name) or all(is_printed(one) or _may_be_words(one) for one in uses[name]):
            continue  # misspelt-variable reports it, nothing depends on it, or it may be empty on purpose
        if not (name in known | passed or re.fullmatch(rf"{_OUTSIDE}|[a-z_].*", name) or names.near(name)):
            yield name, node


def is_printed(node: Node) -> bool:
    """Return whether a variable is only in a message."""
    above = node.around("command")
    written = node.under("file_redirect", "pipeline")
    return above is not None and above.name in ("echo", "printf") and not written


def _may_be_words(node: Node) -> bool:
    """Return whether a variable is a word of its own, without quotes, and no value of an option."""
    above, before = node.parent, node.previous()
    return above is not None and above.type == "command" and before is not None and before.text[:1] != "-"


def _unchecked_argument(script: Script) -> Node | None:
    """Return the first use of an argument of the script, if nothing tests the arguments."""
    if re.search(r"\$#|\$\{[1-9#][^}]|(^|[\s;])(shift|getopts|set --)\b", script.tree.text):
        return None
    tests = list(script.tree.all("test_command", "case_statement"))
    if any(re.search(r"\$\{?[1-9@*]", node.text) for node in tests):
        return None
    tested = (name for node in tests for name, _ in expansions(node))
    if any(re.search(r"\$\{?[1-9]", value.text) for name in tested for value in script.values.get(name, ())):
        return None
    own = (node for name, node in script.expansions if re.fullmatch("[1-9]", name) and not is_printed(node))
    return next((node for node in own if not node.under("function_definition", "heredoc_body")), None)
