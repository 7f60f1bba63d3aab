"""Latency histograms as records have them: HDR's V2 encoding, deflated, in base64, then exact sums.

The encoding is described at https://hdrhistogram.org and in pgrig's docs/bench.schema.json.
"""

import base64
import struct
import zlib
from dataclasses import dataclass, field
from typing import Dict, Iterable, Optional

_COMPRESSED, _PLAIN = 0x1C849304, 0x1C849303


@dataclass
class Histogram:
    """A distribution of durations in nanoseconds.

    ``counts`` maps the upper end of a bucket to the number of durations in it; a bucket is 0.1 % wide.
    """

    counts: Dict[int, int] = field(default_factory=dict)
    sum_ns: Optional[int] = None

    @classmethod
    def parse(cls, text: str) -> "Histogram":
        """Reads the text that a record has for a histogram; raises ValueError if it is damaged."""
        packed, _, sums = text.partition(";")
        try:
            data = base64.b64decode(packed)
            cookie, length = struct.unpack_from(">ii", data)
            if cookie & ~0xF0 != _COMPRESSED:
                raise ValueError("no HDR histogram, version 2, deflated")
            plain = zlib.decompress(data[8 : 8 + length])
            cookie, size, _, digits, lowest, _, _ = struct.unpack_from(">iiiiqqd", plain)
            if cookie & ~0xF0 != _PLAIN:
                raise ValueError("no HDR histogram, version 2")
            counts = _counts(plain[40 : 40 + size], digits, lowest)
        except (struct.error, zlib.error, IndexError) as error:
            raise ValueError(f"a histogram is damaged: {error}") from error
        return cls(counts, int(sums.split(",")[1]) if sums else None)

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self.counts.values())

    @property
    def mean_ms(self) -> Optional[float]:
        """The mean in milliseconds, from the exact sum; None for no duration."""
        if not self.count or self.sum_ns is None:
            return None
        return self.sum_ns / self.count / 1e6

    def quantile_ms(self, quantile: float) -> Optional[float]:
        """The duration in milliseconds that a share of all durations (0 to 1) does not exceed."""
        left = max(1, -int(-quantile * self.count // 1))
        for value, count in sorted(self.counts.items()):
            left -= count
            if left <= 0:
                return value / 1e6
        return None

    @classmethod
    def merge(cls, several: Iterable["Histogram"]) -> "Histogram":
        """All durations of several histograms."""
        merged, total = cls(), 0
        for one in several:
            total += one.sum_ns or 0
            for value, count in one.counts.items():
                merged.counts[value] = merged.counts.get(value, 0) + count
        merged.sum_ns = total
        return merged


def _counts(payload: bytes, digits: int, lowest: int) -> Dict[int, int]:
    half_bits = (2 * 10**digits - 1).bit_length() - 1
    unit_bits = lowest.bit_length() - 1
    counts, at, index = {}, 0, 0
    while at < len(payload):
        number, shift = 0, 0
        # Eight bytes carry 7 bits each, a ninth carries 8.
        while True:
            byte = payload[at]
            at += 1
            number |= (byte if shift == 56 else byte & 0x7F) << shift
            shift += 7
            if shift > 56 or byte < 0x80:
                break
        number = (number >> 1) ^ -(number & 1)
        if number < 0:
            index += -number
            continue
        if number > 0:
            bucket = max((index >> half_bits) - 1, 0)
            sub = index - (bucket << half_bits)
            low = sub << (bucket + unit_bits)
            counts[low + (1 << (bucket + unit_bits)) - 1] = number
        index += 1
    return counts
