"""Scripts that tree-sitter alone does not read as bash does."""

from __future__ import annotations

import re

import pytest

from jobgen.script.syntax import expansions, is_plain, parse


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


@pytest.mark.parametrize(
    "body", ["a $1 b", "$1", '"$1" x', "'$1'", "x/$1", "\\$2 $1", "awk '{print $1}'", "y\nz $1"]
)
def test_an_argument_in_a_here_document(body: str) -> None:
    tree = parse(f"cat > x <<END\n{body}\nEND\necho $A\n".encode())
    assert [(name, node.text, is_plain(node)) for name, node in expansions(tree)] == [
        ("1", "$1", True),
        ("A", "$A", True),
    ]
    assert not tree.damaged


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A=x-`date`.log", ["A=x-`date`.log"]),
        ("A=a/`date +%F`/b`hostname`/c ./a", ["A=a/`date +%F`/b`hostname`/c", "./a"]),
        ("./a `b` x-`c`.d `e`", ["./a", "`b`", "x-`c`.d", "`e`"]),
        ('./a "x`c`.d" y`c`', ["./a", '"x`c`.d"', "y`c`"]),
        ("./a `b c`  `d` x", ["./a", "`b c`", "`d`", "x"]),
        ('./a "`b` `c`" `d` `e` `f`', ["./a", '"`b` `c`"', "`d`", "`e`", "`f`"]),
    ],
)
def test_a_word_with_code_in_it(text: str, words: list[str]) -> None:
    tree = parse(f"{text}\n".encode())
    whole = tree.children[0]
    assert [one.text for one in (whole.children if whole.type == "command" else [whole])] == words
    assert [one.text for one in tree.all("command_substitution")] == re.findall("`[^`]*`", text)


def test_an_argument_in_a_here_document_without_expansion() -> None:
    assert not list(expansions(parse(b"cat > x <<'END'\n$1\nEND\n")))


@pytest.mark.parametrize("line", ["A=``", "A=$()", "A=$( )", "echo $(a)$()", "A=`a``b`"])
def test_an_empty_substitution(line: str) -> None:
    tree = parse(f"{line}\nsrun ./a\n".encode())
    assert [one.text for one in tree.children] == [line, "srun ./a"]
    assert not tree.damaged


@pytest.mark.parametrize(
    "line",
    [
        "A=$((10#$B + 1))",
        "A=$((10#$B + 10#${C} * 2))",
        "(( 10#$A > 3 ))",
        "exec 3<>pipe",
        "A=${B#*[}",
        "A=${A%]*}",
        'A="${B#\\\'}"',
        './b -x  `# a "comment" of \'b` \\\n  -y',
        "A=$(( 2 * 10#${B:1:2} ))",
        "[[ 10#$A -gt 10#$B ]]",
        "exec 3<>pipe-$$",
        "let a=(b/60)%60",
        "A=${B:-$(((4 + 1) * 2))}",
        "A=${B:-$(((C+D)/E))}/x",
        'echo "${B:=$(( (${C} + 2) * (3 - 1) ))}" b',
        "export A=${B-$(((`nproc` + 1) / 2))}",
        'cat 1<> "$A"',
        "A=$(ls | grep h$)",
        "A=`ls | grep h$`",
        "if ls | grep -q h$; then ./b; fi",
        "A=${B#\\'}",
        'A="${B%\\\'}"',
        "A=${B//\\'/x}",
        "A=${B%]*}",
        "if [ $A == '[' ]; then B=${B%]}; fi",
        "./b -x `# a text` \\\n  `# more`   `# of it` \\\n  -y",
    ],
)
def test_signs_that_the_parser_does_not_know(line: str) -> None:
    tree = parse(f"{line}\nsrun ./a\n".encode())
    assert [one.text for one in tree.children] == [line, "srun ./a"]
    assert not tree.damaged
    tree = parse(f"if true; then\n{line}\nfi\nsrun ./a\n".encode())
    assert [one.type for one in tree.children] == ["if_statement", "command"]
    assert line in tree.children[0].text
    assert not tree.damaged


@pytest.mark.parametrize("number", ["$((4*(1+2)))", "$((2*$C))", "$(((1+2)))"])
def test_a_number_as_a_default(number: str) -> None:
    """It is no substitution, in which the numbers would be commands."""
    tree = parse(f"A=${{B:-{number}}}\nsrun ./a\n".encode())
    assert [one.text for one in tree.all("arithmetic_expansion")] == [number]
    assert [one.text for one in tree.all("command")] == ["srun ./a"]


@pytest.mark.parametrize("end", ["\\", " \\\n", "\\\n\n", " \\\n  \n\t\n"])
def test_a_backslash_at_the_end_of_the_text(end: str) -> None:
    tree = parse(f"cd b\nsrun ./a{end}".encode())
    assert [one.text for one in tree.children] == ["cd b", "srun ./a"]
    assert not tree.damaged


@pytest.mark.parametrize(
    ("word", "text"), [("echo $$; b", "$$"), ("echo a\\$; b", "a\\$"), ("echo 10#a", "10#a")]
)  # fmt: skip
def test_words_that_have_such_signs(word: str, text: str) -> None:
    command = next(parse(f"{word}\n".encode()).all("command"))
    assert command.children[1].text == text


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("D=$X/b$Y-c", "XY"),
        ("./a b=$XY:c", "XY"),
        ("D=$X/b$1", "X1"),
        ("D=$(a)/b$Y-c", "Y"),
        ("./a --env A=$X,B=$Y,C=$Z", "XYZ"),
        ("./a $X*$Y/b", "XY"),
        ("./a $1_b $10", "11"),
        ('./a "c$1b"', "1"),
        ("./a \\$1b $X", "X"),
    ],
)
def test_expansions_within_a_word(line: str, names: str) -> None:
    tree = parse(f"{line}\n".encode())
    assert "".join(name for name, _ in expansions(tree)) == names
    assert all(is_plain(node) for _, node in expansions(tree))
    assert [one.text for one in tree.children] == [line]
