"""Language backends: what writes captions of pictures, merges them with changes, tells differences, judges.

A backend is anything that fulfils `Language`. There are three: a server that speaks OpenAI's chat API
(`server`), a model of the transformers library on this machine (`local`), and, for the pictures of shapes,
the scene graphs behind them (`oracle`). `loading` puts two together: one that sees and one that writes.

Answers come in the order of the questions, one each; where a question has none, `LanguageError` names it and
nothing that was answered is lost.
"""

from submissions.language.loading import load_language
from submissions.language.protocol import Language, LanguageIdentity, Picture, pictures_by_id

__all__ = ["Language", "LanguageIdentity", "Picture", "load_language", "pictures_by_id"]
