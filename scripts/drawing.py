"""SVG drawings for the docs, in the colors and fonts of the charts that lockstep itself draws
(src/cli/svg_chart.cpp)."""
import math

from current import ROOT, keep_files

PICTURES = ROOT / "docs" / "pictures"
COLORS = ("#2f6fde", "#d9542b", "#2a9d6f", "#8a55c8", "#c99a13", "#1aa3b8", "#c8467f", "#7b7f8a")
STYLE = ('svg{background:#fff;font-family:system-ui,"DejaVu Sans",sans-serif}text{fill:#6d7280;font-size:11px}'
         ".title{fill:#22252b;font-size:13px;font-weight:600}.strong{fill:#22252b}.light{fill:#fff}.end{text-anchor:end}"
         ".middle{text-anchor:middle}.grid{stroke:#e6e3dd}.frame{fill:none;stroke:#b9bcc4}.empty{fill:#f4f3f0;stroke:#e6e3dd}"
         ".line{fill:none;stroke-width:1.6}.thin{fill:none;stroke-width:.8}.pale{fill-opacity:.35}"
         + "".join(f".s{i}.fill{{fill:{color}}}.s{i}.line,.s{i}.thin{{stroke:{color}}}" for i, color in enumerate(COLORS)))
HEAD = 7  # length of an arrowhead


def number(value):
    return f"{value:.1f}".removesuffix(".0")


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Drawing:
    """A list of shapes; y grows downwards."""

    def __init__(self, width, height, title):
        self.size, self.shapes = (width, height), []
        self.text(16, 24, title, "title")

    def rectangle(self, place, style, hint=""):
        """`place`: x, y, width, height."""
        x, y, width, height = place
        inside = f"><title>{escaped(hint)}</title></rect>" if hint else "/>"
        self.shapes.append(f'<rect class="{style}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
                           f'height="{number(height)}"{inside}')

    def text(self, x, y, text, style=""):
        kind = f' class="{style}"' if style else ""
        self.shapes.append(f'<text{kind} x="{number(x)}" y="{number(y)}">{escaped(text)}</text>')

    def line(self, points, style):
        path = "L".join(f"{number(x)},{number(y)}" for x, y in points)
        self.shapes.append(f'<path class="{style}" d="M{path}"/>')

    def arrow(self, start, end, color, kind="line"):
        """A straight line with a head at its end."""
        length = math.dist(start, end)
        along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
        foot = (end[0] - HEAD * along[0], end[1] - HEAD * along[1])
        across = (-along[1] * HEAD / 2, along[0] * HEAD / 2)
        self.line([start, foot], f"{color} {kind}")
        corners = [end, (foot[0] + across[0], foot[1] + across[1]), (foot[0] - across[0], foot[1] - across[1])]
        self.line(corners, f"{color} fill")

    def keys(self, x, y, names):
        """A legend: (style of a swatch, name) from left to right."""
        for style, name in names:
            self.rectangle((x, y - 9, 9, 9), style)
            self.text(x + 14, y, name)
            x += 32 + 6.2 * len(name)

    def svg(self):
        width, height = self.size
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
                f"<style>{STYLE}</style>\n" + "\n".join(self.shapes) + "\n</svg>\n")


def keep(drawings, script):
    """Writes drawings by name into docs/pictures, or checks them, like keep_files()."""
    keep_files({PICTURES / f"{name}.svg": drawing.svg() for name, drawing in drawings.items()}, script)
