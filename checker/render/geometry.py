"""Where things are in a picture: rectangles and curves."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Box", "Curve", "Point"]

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle by its centre."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        return (
            abs(self.x - other.x) * 2 < self.width + other.width
            and abs(self.y - other.y) * 2 < self.height + other.height
        )

    def holds(self, point: Point, margin: float = 0) -> bool:
        """Whether the point is inside, or no farther outside than half the margin."""
        return (
            abs(point[0] - self.x) * 2 < self.width + margin
            and abs(point[1] - self.y) * 2 < self.height + margin
        )


@dataclass(frozen=True, slots=True)
class Curve:
    """A quadratic Bézier curve; ``arch`` is -1 if it rises above a row, 1 if it hangs below."""

    a: Point
    control: Point
    b: Point
    arch: int

    def at(self, t: float) -> Point:
        """The point at t, from 0 to 1."""
        (x, y), (cx, cy), (u, v) = self.a, self.control, self.b
        s = 1 - t
        return s * s * x + 2 * s * t * cx + t * t * u, s * s * y + 2 * s * t * cy + t * t * v

    def between(self, t: float, u: float) -> Curve:
        """The part of the curve from t to u."""
        (ax, ay), (cx, cy), (bx, by) = self.a, self.control, self.b

        def blend(a: float, c: float, b: float) -> float:
            return (1 - t) * (1 - u) * a + ((1 - t) * u + t * (1 - u)) * c + t * u * b

        return Curve(self.at(t), (blend(ax, cx, bx), blend(ay, cy, by)), self.at(u), self.arch)
