"""`outword pull`: an encoder's files, fetched in advance."""

from __future__ import annotations

import json

import click

from outword.cli.choices import Named
from outword.cli.progress import say, show


@click.command("pull")
@click.argument("encoder", type=Named("encoders"))
@click.option(
    "--precision", type=click.Choice(["fp32", "fp16", "int8"]), help="Of a published export.  [default: int8]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(encoder: str, precision: str | None, as_json: bool) -> None:
    """Fetch the files of ENCODER from the hub, unless they are here, and print sha256, bytes and path of each.

    A short name means the model for torch where that is installed, else its published export to ONNX; --precision int8
    means the export in any case. They are kept where the hub's own tools keep them: HF_HOME, HF_HUB_OFFLINE and
    proxies are honoured.

    \b
    Example:
      outword pull clip-vit-b-16
    """
    from outword.base.files import sha256_file
    from outword.encoders.names import canonical, parse
    from outword.encoders.present import resolved
    from outword.encoders.torch.models import files_of
    from outword.errors import ParameterError

    name = resolved(canonical(encoder), precision)
    if precision:
        if parse(name).library != "onnx":
            raise ParameterError(f"{name} is for torch, got --precision {precision}", hint="--precision int8")
        name = f"{name}@{precision}"
    files = files_of(parse(name))
    rows = [{"sha256": sha256_file(path), "bytes": path.stat().st_size, "path": str(path)} for path in files]
    lines = [f"{row['sha256']}  {row['bytes']:>12}  {row['path']}" for row in rows]
    show(json.dumps(rows, indent=2) if as_json else "\n".join(lines))
    total = sum(path.stat().st_size for path in files)
    say(f"{encoder}: {len(files)} files, {total / 1e6:,.1f} MB")
