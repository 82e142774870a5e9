"""What can go wrong, in one line each: the parameter, the rule, the value received, and what to do next.

OutwordError                 anything that outword raises on purpose
├── ParameterError           a parameter breaks its rule; also a ValueError
├── InputError               a file, a list or an array is not what it should be; also a ValueError
│   └── NotFittedError       something is asked of a method that was not fitted
├── ImageError               one image cannot be used; also a ValueError
├── UnreachableError         a remote place did not answer
├── ArtifactError            a saved detector is missing, damaged or of a newer version
└── MissingExtraError        an optional library is not installed; also an ImportError

WeakLabelsWarning            the encoder may keep out most photos of some labels; a UserWarning
"""

from __future__ import annotations

from typing import TypeVar

__all__ = [
    "ArtifactError",
    "ImageError",
    "InputError",
    "MissingExtraError",
    "NotFittedError",
    "OutwordError",
    "ParameterError",
    "UnreachableError",
    "WeakLabelsWarning",
]

Self = TypeVar("Self", bound="OutwordError")


class OutwordError(Exception):
    """Any error that outword raises on purpose; `hint` says what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}. hint: {hint}" if hint else message)

    def bare(self: Self) -> Self:
        """The same error without its history, for errors that are kept: a traceback keeps all that was on the stack."""
        return type(self)(self.message, hint=self.hint)


class ParameterError(OutwordError, ValueError):
    """A parameter breaks its rule."""


class InputError(OutwordError, ValueError):
    """A file, a list of labels or an array is not what it should be."""


class NotFittedError(InputError):
    """A method scores before `fit` was called."""


class ImageError(OutwordError, ValueError):
    """One image cannot be used; a run records it and goes on."""


class UnreachableError(OutwordError):
    """A remote place that did not answer; a run ends, and goes on from there when it is started again."""


class ArtifactError(OutwordError):
    """A saved detector is missing, damaged, tampered with or from a newer version."""


class MissingExtraError(OutwordError, ImportError):
    """An optional dependency is not installed."""


class WeakLabelsWarning(UserWarning):
    """The encoder sees some labels poorly: most of their photos may be kept out (`Detector.labels_report`)."""
