"""Attacks from a seed: ``python -m attacks.generated SEED NUMBER`` in the folder tests makes and runs them.

Each kind is a function that makes one attack: it may refuse, in a sentence, and nothing else. What was planted is not
shown, and a text that a user gives stays one word of the script.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from attacks.targets import TARGETS, Done, attack, named

from jobgen.runs.terminal_text import TerminalText
from jobgen.script.syntax import Node, parse

CANARY = "pwned"
JOBS = {named(one): one for one in TARGETS if named(one) in ("slurm", "pbs", "local")}
FRAGMENTS = (
    *(f"$(touch {CANARY})", f"`touch {CANARY}`", f";touch {CANARY};", f"\ntouch {CANARY}\n", f"|touch {CANARY}", f"&&touch {CANARY}"),
    *("'", '"', "\\", "$'", "${x}", "$((1))", "{a,b}", "*", "?", "~", "!", "#", "<(x)", ">x", "\r\n", "\t", " ", "=", "--", "-", "%j", "%"),
    *("{{ 1 }}", "{% raw %}", "{##", "EOF\n", "END_OF_RANK\n", "#SBATCH -p x\n", "#PBS -q x\n", "\x1b[31m", "\x1b]0;t\x07", "\x9b2J", "\x00"),
    *("é", "\u202e", "\ud800", "\udcff", "\ufeff", "\U0001f600", "0", "1", "9" * 30, "a", "train.py", "../", "/", ".", ",", ":", "[", "]", "x" * 300),
)  # fmt: skip
SEQUENCES = (
    *(b"\x1b]52;c;eA==\x07", b"\x1b]0;title\x1b\\", b"\x1b[2J", b"\x1b[1;1H", b"\x1bPq#0\x1b\\", b"\x1b_Gx\x1b\\", b"\x1bc", b"\x9b2J", b"\xc2\x9b2J"),
    *(b"\xc2\x9d0;t\xc2\x9c", b"\x1b[31m", b"\x1b[38;5;1m", b"\x1b[0m", b"\x1b", b"\x1b[", b"\x1b]", b"\x1b[?25l", b"\x08", b"\x07", b"\x7f", b"\r"),
    *(b"text", b"\n", "é€".encode(), b"\xff", b"[31m", b"52;c;eA==", b"\x1b(0", b"\x18", b"\x1b[1 q", b"\x1b[>4;2m", b"\x1b\x1b]0;x\x07"),
)  # fmt: skip


class Attacker:
    """Random choices, a directory for the files of an attack, and what was planted in it."""

    def __init__(self, seed: object, place: Path) -> None:
        self.draw = random.Random(str(seed))
        self.place = place
        letters = self.draw.choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=24)
        self.token = f"hf_Plant{''.join(letters)}"

    def text(self, most: int = 5) -> str:
        return "".join(self.draw.choice(FRAGMENTS) for _ in range(self.draw.randint(1, most)))

    def word(self) -> str:
        """Return a text that the arguments of a program can hold."""
        text = self.text().replace("\0", "").replace("\ud800", "")
        return text.rstrip("\\")  # tree-sitter-bash takes the end of $'\\\\' for a quote

    def secret(self) -> list[str]:
        """Return words with the token, as users write it."""
        token = self.token
        return self.draw.choice(
            [["--api-key", token], [f"--token={token}"], [f"https://u:{token}@host/x"], [f"--url=ftp://{token}@h"], ["--hub-token", token], [token]]
        )  # fmt: skip

    def file(self, name: str, content: str | bytes) -> str:
        path = self.place / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogatepass"))
        return str(path)

    def mutated(self, text: str) -> str:
        """Return a text with some changes: characters lost, lines repeated or swapped, fragments added."""
        for _ in range(self.draw.randint(1, 4)):
            at = self.draw.randrange(len(text) + 1)
            cut = self.draw.choice((0, 0, 1, 3, 20))
            more = self.draw.choice(("", self.text(2), '"', "]", "\n", f'"{self.token}"', text[:at][-30:]))
            text = text[:at] + more + text[at + cut :]
        return text

    def run(self, words: Sequence[str], hidden: bool = True) -> Done:
        """Run a command; the token must not be in its messages, nor in its output if that is no script."""
        done = attack(words)
        assert self.token not in done.err, words
        assert not hidden or self.token not in done.out, words
        assert not list(self.place.rglob(CANARY)), words
        return done


def check_script(script: str, words: Sequence[str]) -> None:
    """Check that bash reads a script, and that its program has exactly these words."""
    data = script.encode(errors="surrogateescape")
    done = subprocess.run(["bash", "-n"], input=data, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    functions = [one for one in parse(data).all("function_definition") if _name(one) == "program"]
    assert len(functions) == 1
    [command] = [one for one in functions[0].all("command") if one.text.startswith("exec ")]
    assert not [*command.all("command_substitution", "process_substitution", "expansion", "simple_expansion")]
    code = f'exec() {{ printf "%s\\0" "$@"; }}\n{functions[0].text}\nprogram'
    ran = subprocess.run(["bash", "-c", code.encode(errors="surrogateescape")], capture_output=True)
    found = ran.stdout.decode(errors="surrogateescape").split("\0")[:-1]
    assert found[-len(words) :] == list(words), (found, words)


def _name(function: Node) -> str:
    name = function.get("name")
    return name.text if name else ""


def option_values(attacker: Attacker) -> None:
    """Several options of a job with values that are like their examples, or like nothing."""
    draw, target = attacker.draw, JOBS[attacker.draw.choice([*JOBS])]
    words = [*target.words]
    for option in draw.sample([*target.options()], draw.randint(1, 4)):
        if option.name != "output":
            words.append(f"{option.opts[0]}={_value(attacker, option)}")
    program = [attacker.word() for _ in range(draw.randint(0, 3))]
    done = attacker.run([*words, "--", "./a", *program], hidden=False)
    code = any(word.startswith(("--setup", "--before", "--after-block")) for word in words)
    if done.status == 0 and done.out.startswith("#!") and not code and "--expand" not in str(words):
        subprocess.run(["bash", "-n"], input=done.out.encode(errors="surrogateescape"), check=True)
    attacker.run([*words, "--explain", "--", "./a", *attacker.secret(), *program])


def _value(attacker: Attacker, option: click.Option) -> str:
    draw = attacker.draw
    plain = draw.choice(
        ("1", "2", "a", "A=b", "1:00:00", "2h", "/x", "0-3", "a:1,b", "gpu", "5000000000", "-1", "")
    )
    if option.name == "env" and draw.random() < 0.7:
        return draw.choice(
            (f"HF_TOKEN={attacker.token}", f"A=https://u:{attacker.token}@h", f"A={attacker.word()}")
        )
    return draw.choice((plain, attacker.text(), plain + attacker.text(2), attacker.text(1) + plain))


def program_arguments(attacker: Attacker) -> None:
    """The words of the program stay words, in a script that only its owner can read; a secret is noticed."""
    draw = attacker.draw
    words = [attacker.word() for _ in range(draw.randint(1, 6))]
    at = draw.randrange(len(words) + 1)
    words = [*words[:at], *attacker.secret(), *words[at:]]
    out = attacker.place / "out.sh"
    out.unlink(missing_ok=True)
    base = [draw.choice([*JOBS]), "--launcher", draw.choice(("torchrun", "none"))]
    done = attacker.run([*base, "-o", str(out), "--", "./a", *words])
    assert out.exists() == (done.status == 0)
    if done.status == 0:
        assert stat.S_IMODE(out.stat().st_mode) == 0o700
        assert "looks like a secret" in done.err, words
        check_script(out.read_bytes().decode(errors="surrogateescape"), words)
    assert not [*attacker.place.glob(".jobgen-*")]


def job_files(attacker: Attacker) -> None:
    """A job file with a secret in it, and with changes."""
    text = f"""scheduler = "slurm"
[job]
name = "a"
walltime = "1h"
[resources]
nodes = 2
gpus_per_node = 4
[environment]
env = {{ NCCL_DEBUG = "WARN", HF_TOKEN = "{attacker.token}" }}
[program]
command = ["train.py", "--api-key", "{attacker.token}", {json.dumps(attacker.word(), ensure_ascii=False)}]
"""
    path = attacker.file("j.toml", attacker.mutated(text))
    attacker.run(
        ["slurm", "--job", path, "--explain"], hidden="api-key" in Path(path).read_text(errors="replace")
    )
    attacker.run(["slurm", "--job", path], hidden=False)
    attacker.run(["check", path])


def site_files(attacker: Attacker) -> None:
    folder = Path(__file__).parents[2] / "templates/sites"
    text = attacker.draw.choice(sorted(folder.glob("*.toml"))).read_text()
    path = attacker.file("s.toml", attacker.mutated(text))
    done = attacker.run(["site", "check", path], hidden=False)
    assert done.status in (0, 1, 2)
    attacker.run(
        [attacker.draw.choice(("slurm", "pbs")), "--site", path, "--account", "a", "--", "./a"], hidden=False
    )


def environments(attacker: Attacker) -> None:
    """Variables of jobgen's own environment, and files of variables, which no script contains."""
    draw = attacker.draw
    names = (
        "COLUMNS",
        "TERM",
        "NO_COLOR",
        "XDG_CACHE_HOME",
        "JOBGEN_TEMPLATE_PATH",
        "LANG",
        "A",
        "HF_TOKEN",
        "VIRTUAL_ENV",
        "TMPDIR",
    )
    changed = {name: attacker.word() for name in draw.sample(names, 4)} | {"HF_TOKEN": attacker.token}
    lines = [
        draw.choice(
            (f"A{attacker.text(1)}=x", f"KEY='{attacker.text(2)}'", f"TOKEN={attacker.token}", "# x", "")
        )
        for _ in range(4)
    ]
    path = attacker.file("tokens.env", "\n".join(lines))
    before = dict(os.environ)
    try:
        os.environ.update(changed)
        attacker.run(["slurm", "--env", "HF_TOKEN", "--env-file", path, "--", "./a"])
        attacker.run(["status"])
    finally:
        os.environ.clear()
        os.environ.update(before)


def names_of_runs(attacker: Attacker) -> None:
    draw, source = attacker.draw, attacker.place / "runs" / "one"
    name = attacker.word().replace("/", "_")[:80] or "x"
    if name in (".", ".."):
        return
    made = attacker.place / "more" / name
    shutil.rmtree(attacker.place / "more", ignore_errors=True)
    made.parent.mkdir()
    try:
        shutil.copytree(source, made)
    except OSError:
        return
    (made / "environment").write_text(f"HF_TOKEN={attacker.token}\0")
    (made / draw.choice(("job-id", "status.json", "plan.json", "hosts", "cancelled"))).write_bytes(
        os.fsencode(attacker.word())
    )
    for words in (
        ["list"],
        ["status", name],
        ["status", "--json", name],
        ["cancel", name],
        ["diff", name, name],
    ):
        done = attacker.run([*words[:1], "--runs-dir", "more", *words[1:]])
        assert not {"\x1b", "\x9b"} & set(done.err), words


def logs_of_runs(attacker: Attacker) -> None:
    """A log is printed as it is; for a terminal only colours are left, wherever it is cut."""
    draw = attacker.draw
    data = b"".join(draw.choice(SEQUENCES) for _ in range(draw.randint(1, 40)))
    shown = TerminalText()
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.randint(0, 5)))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    text = "".join(map(shown.shown, pieces))
    whole = TerminalText()
    assert text == whole.shown(data), data
    rest = text
    for colour in ("\x1b[31m", "\x1b[38;5;1m", "\x1b[0m"):
        rest = rest.replace(colour, "")
    assert not [one for one in rest if one not in "\n\r\t" and (one < " " or "\x7f" <= one <= "\x9f")], data
    attempt = attacker.place / "runs/one/attempt-1/nodes/0"
    attempt.mkdir(parents=True, exist_ok=True)
    (attempt / "node1.log").write_bytes(b"0: " + data.replace(b"\n", b"\n0: ") + b"\n")
    done = attacker.run(["logs", "--rank", "0", "one"])
    assert done.status != 0 or done.out.encode(errors="surrogateescape") == data + b"\n", data


def deepspeed_configs(attacker: Attacker) -> None:
    draw = attacker.draw
    config = {
        "train_batch_size": draw.choice((1, 8, -1, "auto", [], 10**30)),
        "monitor": {"api_key": attacker.token},
        attacker.word(): [None],
    }
    text = json.dumps(config)
    path = attacker.file("ds.json", text if draw.random() < 0.5 else attacker.mutated(text))
    words = draw.choice(([f"--deepspeed_config={path}"], ["--deepspeed_config", path], ["--config", path]))
    done = attacker.run(["slurm", "--nodes", "2", "--launcher", "torchrun", "--", "train.py", *words])
    assert (
        done.status != 0
        or "looks like a secret" in done.err
        or json.dumps(config) != Path(path).read_text(errors="replace")
    )
    script = attacker.file(
        "c.sh", f"#!/bin/bash\n#SBATCH -N 2\n#SBATCH -t 1:00:00\nsrun python train.py {' '.join(words)}\n"
    )
    attacker.run(["check", script])


KINDS: tuple[Callable[[Attacker], None], ...] = (
    *(option_values, program_arguments, job_files, site_files, environments, names_of_runs, logs_of_runs, deepspeed_configs),
)  # fmt: skip


def main(seed: str, number: int) -> None:
    """Run attacks, each with a seed of its own, which a failure prints."""
    from attacks.conftest import fill

    place = Path(tempfile.mkdtemp())
    os.chdir(place)
    fill(place)
    failed = 0
    for count in range(number):
        kind = KINDS[count % len(KINDS)]
        try:
            kind(Attacker(f"{seed}-{count}", place))
        except Exception as error:
            failed += 1
            print(f"{kind.__name__} {seed}-{count}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        if list(place.rglob(CANARY)):
            sys.exit(f"{kind.__name__} {seed}-{count}: code ran")
    print(f"seed {seed}: {number} attacks, {failed} failed")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
