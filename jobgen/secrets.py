"""Masking of what looks like a secret, by its name or by its form, wherever a value is shown or recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

MASK = "***"
# A text without one of these holds no secret, and no other expression has to be compiled.
_HINTS = (
    *("token", "secret", "pass", "pw", "credential", "key", "bearer", "://", "hf_", "gho_", "ghp_", "ghu_"),
    *("ghs_", "ghr_", "github_", "glpat", "sk-", "xox", "aiza", "akia", "asia", "eyj"),
    *("dckr_", "pypi-", "npg_", "_pat", "signature", "sig=", "auth", " login"),
)
_NAME = (
    r"(?:token|secret|password|passwd|passphrase|(?<=[-_])pwd|(?<![a-z-])pass|(?<=--)pass|(?:db|sql|user|smtp|ssh)pass"
    r"|credential|signature|(?<=[?&])sig|(?-i:(?<=[A-Z0-9])_(?:KEY|PAT|AUTH))"
    r"|(?:api|access|private|secret|auth|account|signing|encryption|wandb)[-_]?key)s?"
)
# Words of language models, such as --pad-token and max_new_tokens, and passes over data, as --single_pass.
_NO_NAME = (
    r"(?:pad|eos|bos|unk|mask|sep|cls|special|image|stop|start|end|per)[-_]?token$|tokens$"
    r"|(?:single|one|two|multi|first|second|low|high|band|by|forward|backward)[-_]?pass$"
)
# Values that are no secrets: switches, and in a text variables and commands of the shell, too.
_NO_VALUE = r"(?is)(?:true|false|yes|no|none|null|[01]|\*{3})?"
_NO_VALUE_IN_TEXT = rf"{_NO_VALUE}|\"?\$[A-Za-z_{{(].*"
# Options that name a secret in some programs only: the form of such a value decides.
_DOUBTFUL = r"--?(?:[\w-]{0,60}[-_])?pw|--(?:key|auth)"
_USER = ("-u", "-U", "--user", "--username", "--user-name", "--user_name", "--login")
_LOGINS = ("mysql", "mysqldump", "mariadb", "sshpass")  # whose -p is a password
_CONTAINERS = ("docker", "podman", "nerdctl")  # whose -u is USER:GROUP
_WORD = r"(?!\*{3})(?:'[^']*(?:'|$)|\"[^\"]*(?:\"|$)|\$'(?:[^'\\]|\\.)*(?:'|$)|[^\s'\"$]|\$)+"
_AFTER_NAME = (
    rf"('[\w.,=-]*?{_NAME})(=)([^']*(?:'\"'\"'[^']*)*)",  # a word in quotes
    rf"(\"[\w.,=-]*?{_NAME})(=)((?:[^\"\\]|\\.)*)",
    rf"({_NAME})([\"']?=|[\"']:\s*)({_WORD})",
    rf"({_NAME})([\"'],\s*)('[^']*'|\"[^\"]*\")",  # in a list
    rf"(?<![\w-])(--[\w-]{{0,60}}?{_NAME})([ \t]+)(?![-(])({_WORD})",
)
_FORMS = (
    r"(?<![A-Za-z0-9])()(?:hf_[A-Za-z0-9]{16,}|gh[opusr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|sk-[\w-]{20,}|xox[a-z]-[\w-]{10,}|AIza[\w-]{30,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|eyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*|dckr_pat_[\w-]{16,}|pypi-[\w-]{16,}|npg_\w{10,})",
    r"(://[^\s/:@]*:)[^\s/]+(?=@)",
    r"(\b[Bb]earer )[^\s'\"]{8,}",
    r"((?i:authorization):\s*\w+\s+)[^\s'\"]+",
    r"(\b(?:wandb|huggingface-cli|hf|comet)\s+login\s+(?:-\S+\s+)*)(?!-)[^\s'\"$]{8,}",
    r"(://)[^\s/:@]{20,}(?=@)",
    r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|$)",
)


def masked(text: str) -> str:
    """Return a text in which ``***`` stands for each secret."""
    if any(option in text for option in (" -p", " -u", " -U", " --user")):
        text = _compiled(r".*? -(?:p|u|U|-user).*").sub(_masked_line, text)
    if not _hints_at_one(text):
        return text
    for pattern in _AFTER_NAME:
        text = _compiled(f"(?is){pattern}").sub(_mask_named, text)
    for pattern in _FORMS:
        text = _compiled(pattern).sub(rf"\1{MASK}", text)
    doubtful = rf"(?i)(?<![\w-])({_DOUBTFUL})([ \t]+|=)(?![-(]){_WORD}"
    return _compiled(doubtful).sub(_mask_doubtful, text)


def masked_data(data: Any, name: str = "") -> Any:
    """Return lists, tables and texts with their secrets masked; ``name`` is that of the value.

    An item of a list may be NAME=VALUE as a whole, or be named by the item before it.
    """
    if isinstance(data, dict):
        return {key: masked_data(one, str(key)) for key, one in data.items()}
    if isinstance(data, (list, tuple)):
        found = _passwords(data)
        return [
            found.get(place) or masked_data(one, _name_of(data, place) or name)
            for place, one in enumerate(data)
        ]
    if isinstance(data, (int, float, str)) and _is_named(name, str(data)) and not isinstance(data, bool):
        return MASK
    return masked_word(data) if isinstance(data, str) else data


def masked_word(word: str) -> str:
    """Return a word with its secrets masked; the value of NAME= is all that follows, also after a blank."""
    end = 0
    for name in word.split("=")[:-1]:
        end += len(name) + 1
        value = word[end:]
        if _is_named(name, value[:10]) or _is_doubtful(name, value):  # 10: longer than any of _NO_VALUE
            return f"{word[:end]}{MASK}"
    return masked(word)


class SecretWord(NamedTuple):
    """A word with a secret: its index, its text, masked, after the option that names it, and a name for a
    variable instead of it."""

    at: int
    text: str
    variable: str


def secret_words(words: Sequence[str]) -> Iterator[SecretWord]:
    """Yield each word of a command with a secret."""
    clean = masked_data(list(words))
    for at, (word, text) in enumerate(zip(words, clean, strict=True)):
        before = words[at - 1] if at else ""
        if text != word:
            named = text == MASK and before.startswith("-")
            option = before if named else re.split(r"[\s=]", text.partition(MASK)[0].rstrip("= "))[-1]
            yield SecretWord(at, f"{before} {MASK}" if named else text, variable_for(option))


def variable_for(option: str) -> str:
    """Return the name of a variable for the value of an option: API_KEY for --api-key."""
    if option == "-p" or _compiled(f"(?i){_DOUBTFUL}").fullmatch(option):
        return {"--key": "API_KEY", "--auth": "AUTH_TOKEN"}.get(option.lower(), "PASSWORD")
    name = re.sub(r"[^A-Za-z0-9]+", "_", option.lstrip("-")).upper()
    return name if is_secret(name, "value") and len(name) < 40 else "NAME"


def masked_prose(text: str) -> str:
    """Return a sentence of a user with its secrets masked, also after ``password:`` and ``pw is``."""

    def hide(match: re.Match[str]) -> str:
        name, between, _ = match.groups()
        named = name.lower() == "pw" or _ends_secretly(name)
        return f"{name}{between}{MASK}" if named else match[0]

    pattern = rf"(?i)(?<![\w-])({_NAME}|pw)(\s*[:=]\s*|\s+is\s+)(?!\*{{3}})(\S+)"
    return _compiled(pattern).sub(hide, masked_word(text))


def is_secret(name: str, value: str) -> bool:
    """Return whether a value is a secret by its name, such as HF_TOKEN, or by its form."""
    return _is_named(name, value) or masked(value) != value


def _name_of(items: Sequence[Any], place: int) -> str:
    """Return the item that names another one: the option before it, or the first of a pair."""
    before = items[place - 1] if place and not str(items[place]).startswith("-") else ""
    may_name = isinstance(before, str) and (before[:2] == "--" or len(items) == 2)
    return before if may_name and _ends_secretly(before) else ""


def _passwords(items: Sequence[Any]) -> dict[int, str]:
    """Return the words, masked, that are passwords by the options and the program before them, by their
    indexes: of ``-p`` behind a user or of a program that logs in, and in ``-u NAME:PASSWORD``."""
    found, before = dict[int, str](), ""
    user = login = container = False
    for at, one in enumerate(items):
        if not isinstance(one, str):
            before = ""
            continue
        name, colon, password = one.partition(":")
        is_user = before in _USER and re.fullmatch(r"['\"]?[$A-Za-z_][$\w{}-]*|['\"]?\S+@[\w.]+", name)
        if _is_doubtful(before, one) or (before == "-p" and (user or login) and _is_password(one)):
            found[at] = MASK
        elif colon and is_user and not container and _is_password(password):
            found[at] = f"{name}:{MASK}"
        elif login and one.startswith("-p") and _is_password(one[2:]):
            found[at] = f"-p{MASK}"
        user = user or bool(is_user)
        program = one.rpartition("/")[2]
        login, container = login or program in _LOGINS, container or program in _CONTAINERS
        before = one
    return found


def _masked_line(match: re.Match[str]) -> str:
    """Return a line with its passwords masked."""
    words = re.split(r"(\s+)", match[0])
    for at, text in _passwords(words[::2]).items():
        words[2 * at] = text
    return "".join(words)


def _is_password(text: str) -> bool:
    """Return whether a word is neither a name, a number nor a path, such as a port, a queue or a folder."""
    mixed = re.search(r"[A-Za-z]", text) and re.search(r"[\d!@#%^&*]", text)
    return len(text) > 5 and bool(mixed) and not re.search(r"[/$=,]|^-|^\w+[-_.]\w+$", text)


def _is_doubtful(option: str, value: str) -> bool:
    """Return whether an option may name a secret, and its value has the form of one."""
    if option[:1] != "-" or not _compiled(f"(?i){_DOUBTFUL}").fullmatch(option):
        return False
    if option.lower().endswith("pw"):
        return len(value) > 3 and not re.fullmatch(rf"{_NO_VALUE}|[-+.\deE]+|[$/.].*", value)
    parts = re.split(r"[^A-Za-z0-9+]", value)
    random = any(len(one) > 7 and len(re.findall(r"\d+", one)) > 2 - (len(one) > 23) for one in parts)
    user = option.lower() == "--auth" and _is_password(value.partition(":")[2])
    return (random or user) and not re.search(r"^[/.~$]|\.\w{1,5}$", value)


def _is_named(name: str, value: str) -> bool:
    if not _hints_at_one(name) or _compiled(_NO_VALUE).fullmatch(value) or _is_directory(name, value):
        return False
    return _ends_secretly(name) and bool(_compiled(r"[\w.,-]+").fullmatch(name))


def _hints_at_one(text: str) -> bool:
    text = text.lower()
    return any(hint in text for hint in _HINTS)


def _ends_secretly(name: str) -> bool:
    no_secret = _compiled(f"(?i){_NO_NAME}").search(name)
    return not no_secret and bool(_compiled(f"(?i){_NAME}$").search(name))


def _is_directory(name: str, value: str) -> bool:
    """Return whether an option names a directory, as ``--pwd /data`` and ``--pwd $DIR`` of Apptainer."""
    return name.lower().endswith("--pwd") and value.lstrip("'\"").startswith(("/", "./", "../", "$"))


def _mask_named(match: re.Match[str]) -> str:
    name, between, value = match.groups()
    before = match.string[max(0, match.start() - 10) : match.start()]
    named = before + name
    is_none = _compiled(_NO_VALUE_IN_TEXT).fullmatch(value) or _is_directory(named, value)
    is_none = is_none or not _ends_secretly(named)
    return match[0] if is_none else f"{name}{between}{MASK}"


def _mask_doubtful(match: re.Match[str]) -> str:
    option, between = match.groups()
    value = match[0][len(option) + len(between) :]
    return f"{option}{between}{MASK}" if _is_doubtful(option, value.strip("'\"")) else match[0]


@lru_cache(maxsize=32)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
