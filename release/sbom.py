"""``python -m release.sbom PYZ``: print the list of the parts of jobgen.pyz (SBOM) as CycloneDX 1.6 JSON.

https://cyclonedx.org/docs/1.6/json/
"""

from __future__ import annotations

import hashlib
import os
import sys
import uuid
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from email import message_from_bytes
from email.message import Message
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL


def sbom(file: Path) -> str:
    """Return the list of the parts of a zipapp. Equal files give equal text."""
    content = file.read_bytes()
    parts = {part.name: part for part in map(_component, _metadata(file))}
    whole = parts.pop("jobgen")
    whole.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(content).hexdigest()))
    bom = Bom(
        components=parts.values(), serial_number=uuid.uuid5(uuid.NAMESPACE_OID, whole.hashes[0].content)
    )
    bom.metadata.component = whole
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    bom.register_dependency(whole, parts.values())
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _metadata(file: Path) -> Iterator[Message]:
    with zipfile.ZipFile(file) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".dist-info/METADATA"):
                yield message_from_bytes(archive.read(name))


def _component(metadata: Message) -> Component:
    name, version = metadata["Name"].lower(), metadata["Version"]
    classifiers = (one for one in metadata.get_all("Classifier", []) if one.startswith("License ::"))
    license = metadata["License-Expression"] or metadata["License"] or next(classifiers, "").split(" :: ")[-1]
    kind = ComponentType.APPLICATION if name == "jobgen" else ComponentType.LIBRARY
    return Component(
        name=name,
        version=version,
        type=kind,
        licenses=[LicenseFactory().make_from_string(license)] if license else [],
        purl=PackageURL("pypi", name=name, version=version),
        bom_ref=f"{name}@{version}",
    )


if __name__ == "__main__":
    sys.stdout.write(sbom(Path(sys.argv[1])))
