"""Scripts that tree-sitter alone does not read as bash does."""

from __future__ import annotations

import pytest

from jobgen.script.syntax import parse


@pytest.mark.parametrize(
    "text",
    [
        "cat > x <<END\nid ${A}\n \nEND\n./a\n",
        "cat > x <<END\nid ${A}\n \n\n\t \nEND\n./a\n",
        "cat > x <<-'END'\n\tid ${A}\n \n\tEND\n./a\n",
        "cat > x <<END\nid ${A}\nEND\n./a\n",
    ],
)
def test_a_blank_line_before_the_end_of_a_here_document(text: str) -> None:
    tree = parse(text.encode())
    assert [one.type for one in tree.children] == ["redirected_statement", "command"]
    assert tree.children[0].text == text.rpartition("\n./a")[0]


@pytest.mark.parametrize("operator", ["gt", "lt", "eq", "ne", "-gt"])
def test_an_operator_of_a_test_without_its_dash(operator: str) -> None:
    """The test fails in bash; the script goes on behind it."""
    source = f"if [ $# {operator} 3 ]; then\n  cd /data\nfi\nsrun ./a\n"
    tree = parse(source.encode())
    assert [one.type for one in tree.children] == ["if_statement", "command"]


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("rm -f a\n\\rm -f b\n./c\n", ["rm -f a", "\\rm -f b", "./c"]),
        ("ls $A\n\t\\cp x y\n", ["ls $A", "\\cp x y"]),
        ("ls \\\n  \\a\n", ["ls \\\n  \\a"]),
        ("echo 'a\n\\b'\n\\time ./a\n", ["echo 'a\n\\b'", "\\time ./a"]),
        ("cat <<END\n\\begin{a}\nEND\n./a\n", ["cat <<END\n\\begin{a}\nEND", "./a"]),
    ],
)
def test_a_line_that_begins_with_a_command_without_its_alias(text: str, statements: list[str]) -> None:
    tree = parse(text.encode())
    assert [one.text for one in tree.children] == statements
