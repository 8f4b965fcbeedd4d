"""Options of aprun of Cray's ALPS that no other launcher needs."""

NAME = "aprun"
RANK = "ALPS_APP_PE"  # the variable with the number of a rank
# Commands about what aprun started, which no other scheduler has.
COMMANDS = ("apstat", "apkill")
# Options without a value.
FLAGS = ("-b", "-B", "-C", "-q", "-ss", "-T")
NOTES = {
    "-b": "changes nothing: no other launcher transfers the program",
    "-B": "the numbers are those of the job",
}
