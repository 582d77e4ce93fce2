"""A drawing as text, with the little of SVG that the plots need."""

from xml.sax.saxutils import escape

FONT = "system-ui, 'DejaVu Sans', sans-serif"


class SVG:
    def __init__(self, width: float, height: float):
        self._size = (width, height)
        self._body: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str, width: float = 1):
        self._body.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{color}" stroke-width="{width}"/>'
        )

    def path(self, points: list[tuple[float, float]], color: str, width: float = 1.5):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._body.append(
            f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="{width}" '
            'stroke-linejoin="round"/>'
        )

    def bar(self, x: float, y: float, width: float, height: float, color: str):
        self._body.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{color}"/>'
        )

    def text(
        self, text: str, x: float, y: float, anchor: str = "start", size: int = 12,
        bold: bool = False, color: str = "#222",
    ):  # fmt: skip
        weight = ' font-weight="600"' if bold else ""
        self._body.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{color}"{weight}>{escape(text)}</text>'
        )

    def file(self) -> str:
        width, height = self._size
        body = "\n".join(self._body)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" font-family="{FONT}">\n'
            f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
        )
