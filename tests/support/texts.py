"""Texts for the properties of scripts, and a program that writes what it got."""

from __future__ import annotations

from hypothesis import strategies as st

# Characters that mean something to a shell, a scheduler, a terminal or a template, and any other.
CHARACTERS = st.one_of(
    st.sampled_from("'\"\\$`(){}[]<>|&;*?!~#%:=,@^ \t\n\r-"),
    st.sampled_from(
        ["{{", "}}", "{%", "$(touch pwned)", "`touch pwned`", "\n#PBS -q x\n", "END_OF_RANK", "%h", "\u202e"]
    ),
    st.characters(blacklist_characters="\x00", blacklist_categories=()).filter(
        lambda c: not "\ud800" <= c < "\udc80" and not "\udd00" <= c <= "\udfff"
    ),
)
TEXT = st.lists(CHARACTERS, max_size=12).map("".join)

# The program of a script: it writes its words and its environment, each ended by a NUL.
PROBE = """#!/bin/bash
printf '%s\\0' "$PWD" "$@" > "$JOBGEN_RUN_DIR/words"
env -0 > "$JOBGEN_RUN_DIR/env"
"""
