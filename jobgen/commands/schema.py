"""``jobgen schema``: prints the JSON Schema of job files for editors, made from the table of options."""

from __future__ import annotations

import json

import click


def schema_text() -> str:
    """Return the JSON Schema of a job file; jobgen/jobgen.schema.json has the same content."""
    import msgspec

    from jobgen.jobfile import training_options
    from jobgen.jobfile.schema import JobFile

    made = msgspec.json.schema(JobFile)
    train = made["$defs"]["JobFile"]["properties"]["train"]
    train["properties"] = training_options.properties()
    train["patternProperties"] = training_options.dashed_properties()
    train["additionalProperties"] = False
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A job file of jobgen",
        "not": {"required": ["program", "train"]},
    }
    return json.dumps(head | made, indent=2) + "\n"


@click.command(
    "schema",
    short_help="Print the JSON Schema of job files, for editors.",
    help="Print the JSON Schema of job files, with which an editor completes and checks them.",
    epilog="Example: jobgen schema > jobgen.schema.json",
)
def schema() -> None:
    click.echo(schema_text(), nl=False)
