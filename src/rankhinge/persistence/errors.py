"""The error of model files."""

from __future__ import annotations

import os

__all__ = ["ModelFileError"]


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a file cannot be read as a model. The message is one line.

    Attributes
    ----------
    path : str or None
        The file as given. None if the error is about the model.

    Examples
    --------
    >>> raise ModelFileError("the file is empty", "model.safetensors")
    Traceback (most recent call last):
    rankhinge.persistence.ModelFileError: model.safetensors: the file is empty
    """

    def __init__(self, what: str, path: str | os.PathLike[str] | None = None) -> None:
        self.what = " ".join(what.split())
        self.path = None if path is None else os.fspath(path)
        super().__init__(self.what if self.path is None else f"{self.path}: {self.what}")

    def __reduce__(self) -> tuple[type[ModelFileError], tuple[str, str | None]]:
        return type(self), (self.what, self.path)
