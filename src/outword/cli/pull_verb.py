"""`outword pull`: an encoder's files, fetched in advance."""

from __future__ import annotations

import json

import click

from outword.cli.choices import Named
from outword.cli.progress import say, show


@click.command("pull")
@click.argument("encoder", type=Named("encoders"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(encoder: str, as_json: bool) -> None:
    """Fetch the files of ENCODER from the hub, unless they are here, and print sha256, bytes and path of each.

    They are kept where the hub's own tools keep them: HF_HOME, HF_HUB_OFFLINE and proxies are honoured.

    \b
    Example:
      outword pull clip-vit-b-16
    """
    from outword.base.files import sha256_file
    from outword.encoders.names import canonical, parse
    from outword.encoders.torch.models import files_of

    files = files_of(parse(canonical(encoder)))
    rows = [{"sha256": sha256_file(path), "bytes": path.stat().st_size, "path": str(path)} for path in files]
    lines = [f"{row['sha256']}  {row['bytes']:>12}  {row['path']}" for row in rows]
    show(json.dumps(rows, indent=2) if as_json else "\n".join(lines))
    total = sum(path.stat().st_size for path in files)
    say(f"{encoder}: {len(files)} files, {total / 1e6:,.1f} MB")
