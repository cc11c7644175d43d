"""A dialogue as an HTML page: round by round what was shown, what was said, and what was found.

The page is one file without scripts. Its pictures, each once and small, lie in a folder beside it.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.progress import step_progress
from cir_datasets.common.terminal import counted
from cir_datasets.images.picture import small_jpeg
from cir_datasets.pages import part
from cir_metrics.errors import CirError
from submissions.rank_file.model import write_bytes
from submissions.transcripts.transcript import SILENT, SOLVED

if TYPE_CHECKING:
    from submissions.embeddings.pictures import Pictures
    from submissions.transcripts.transcript import Round, Transcript

_SHOWN = 6
"""Images of each round's list that are shown."""
_SIDE = 192
_QUALITY = 85


def write_page(transcript: Transcript, pictures: Pictures, path: str | Path) -> Path:
    """Write the page, and its pictures into the folder `NAME.pictures` beside it.

    Args:
        transcript: the dialogue.
        pictures: of the gallery; references outside it, and what cannot be read, are shown by id alone.
        path: the page, ending in .html.

    Raises:
        SubmissionError: the system refuses to write there.
    """
    target = Path(path)
    folder = target.with_suffix(".pictures")
    places = {image: place for place, image in enumerate(pictures.ids)}
    wanted = [image for image in dict.fromkeys(_images(transcript.rounds)) if image in places]
    files: dict[str, str] = {}
    with step_progress("writing pictures", len(wanted)) as advance:
        for number, image in enumerate(wanted, start=1):
            try:
                content = small_jpeg(pictures.open(places[image]), _SIDE, _QUALITY)
            except (OSError, CirError):
                continue
            name = f"{number:06d}.jpg"
            folder.mkdir(parents=True, exist_ok=True)
            write_bytes(content, folder / name)
            files[image] = f"{folder.name}/{name}"
            advance(1)
    return write_bytes("\n".join(_page(transcript, files)).encode(), target)


def _images(rounds: Iterable[Round]) -> Iterator[str]:
    for each in rounds:
        yield each.target
        if each.reference is not None:
            yield each.reference
        yield from each.top[:_SHOWN]


def _page(transcript: Transcript, files: dict[str, str]) -> Iterator[str]:
    own = (resources.files("submissions") / "multiround" / "page.css").read_text("utf-8")
    style = part("page.css") + own
    sessions = transcript.sessions()
    solved = sum(rounds[-1].end == SOLVED for rounds in sessions.values())
    title = f"{transcript.method.name} on {transcript.benchmark}"
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(title)}</title><style>{style}</style></head><body>"
    yield f"<header><h1>{_text(title)}</h1>"
    ended = f", {solved:,} solved" if transcript.choices.after_success == "stop" else ""
    number = counted(len(sessions), "session")
    yield f"<p>{number}{ended}. {_text(transcript.choices.text_of())}</p></header><main>"
    for session, rounds in sessions.items():
        yield from _session(session, rounds, transcript.choices.k, files)
    yield "</main></body></html>"


def _session(session: str, rounds: Sequence[Round], k: int, files: dict[str, str]) -> Iterator[str]:
    end = rounds[-1].end
    word, kind = f"not found in {counted(len(rounds), 'round')}", "open"
    if rounds[-1].rank <= k:
        word, kind = f"found in round {len(rounds)}", "found"
    elif end.startswith(SILENT):
        word, kind = f"ended in round {len(rounds)}: {end.removeprefix(SILENT)}", "silent"
    yield f'<article class="{kind}"><div class="head"><h2>{_text(session)}</h2><span class="end">'
    yield f'{_text(word)}</span></div><div class="body"><div class="wanted"><h3>wanted</h3>'
    yield f"{_picture(rounds[-1].target, files)}</div><ol>"
    for each in rounds:
        yield '<li><div class="asked">'
        reference = "" if each.reference is None else _picture(each.reference, files)
        said = _text(each.caption) if each.caption else "<i>no words</i>"
        yield f'{reference}<p class="said">{said}</p></div><div class="found-images">'
        yield f'<p class="rank">rank <b>{each.rank:,}</b></p><div class="row">'
        yield from (
            _picture(image, files, "target" if image == each.target else "") for image in each.top[:_SHOWN]
        )
        yield "</div></div></li>"
    yield "</ol></div></article>"


def _picture(image: str, files: dict[str, str], kind: str = "") -> str:
    css = f' class="{kind}"' if kind else ""
    if image not in files:
        return f"<figure{css}><span>{_text(image)}</span></figure>"
    name = _text(image)
    return (
        f'<figure{css}><img src="{_text(files[image])}" alt="{name}" title="{name}" loading="lazy"></figure>'
    )


_text = functools.partial(html.escape, quote=True)
