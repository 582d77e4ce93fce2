"""JSON that sfud's parser accepts too: anything else would never be answered."""

import json
import math
from typing import Any

from sfud_gateway.refusals import refuse

DEEPEST = 48  # levels; sfud allows 64, and the call around the params has some


def check(value: Any, depth: int = 0) -> None:
    """Raises `Refused` for what JSON of sfud cannot carry: it reads strictly."""
    if depth > DEEPEST:
        raise refuse("invalid-params", "this is nested too deeply")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise refuse("invalid-params", "a string has half of a surrogate pair") from None
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            finite = math.isfinite(float(value))
        except OverflowError:
            finite = False
        if not finite:
            raise refuse("invalid-params", "a number is out of range")
    elif isinstance(value, list):
        for item in value:
            check(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            check(key, depth + 1)
            check(item, depth + 1)


def loads(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise refuse("parse-error", "this is no JSON") from None
    check(value)
    return value
