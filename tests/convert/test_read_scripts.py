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
