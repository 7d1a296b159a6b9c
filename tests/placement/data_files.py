"""Small data sets of every kind that a drawn job may read, with what the settings of sources are about: bad rows and
files, categories that training lacks, nested classes, masks in black and white."""
import struct
import zlib


def png(pixels):
    """Of rows of gray values."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(row) for row in pixels))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def drawn_pixels(i, side, values=range(256)):
    return [[values[(i * 37 + x * 11 + y * y * 5) % len(values)] for x in range(side)] for y in range(side)]


def write_rows(path, count, categories):
    lines = ["x,y,zip,color,day,note,w,kind"]
    for i in range(count):
        x = "wrong" if i % 31 == 7 else "" if i % 13 == 3 else f"{(i * 7919 % 1000) / 250 - 2}"
        lines.append(f"{x},{i * 31 % 17},0{i % 3},{categories[i * i % len(categories)]},2024-0{i % 9 + 1}-11,note {i},"
                     f"{i % 4 + 1},{'abc'[i * 5 % 7 % 3]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_images(folder):
    for i in range(160):
        path = folder / "shots" / ("ant", "bee")[i % 2] / f"camera{i // 2 % 3}" / f"{i:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no image" if i % 40 == 9 else png(drawn_pixels(i, 8 + i % 3)))
    for name, values in (("black", (0, 0, 255)), ("void", (0, 1, 9))):
        lines = ["image,mask"]
        for i in range(130):
            for kind, pixels in (("image", drawn_pixels(i, 8)), ("mask", drawn_pixels(i // 2, 8, values))):
                (folder / f"{name}-{kind}{i}.png").write_bytes(png(pixels))
            lines.append(f"{name}-image{i}.png,{name}-mask{i}.png")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_all(folder):
    write_rows(folder / "rows.csv", 180, ("red", "green", "blue"))
    write_rows(folder / "more_rows.csv", 40, ("red", "violet", "NA", "blue"))
    write_images(folder)
    lines = [f"{'so ' * (i % 9)}line {i * i % 97},{('true', 'false')[i % 5 % 2]}" for i in range(150)]
    (folder / "texts.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    # Validation sets of their own have the context and the tokenizer of the training set.
    (folder / "more_texts.csv").write_text("\n".join(["text,label", *lines[3:20]]) + "\n", encoding="utf-8")
    (folder / "more_text.txt").write_text("".join(f"so on in line {i * i % 97}: {i}.\n" for i in range(20)), encoding="utf-8")
    for name, count in (("tokens", 3000), ("more_tokens", 300)):
        (folder / f"{name}.bin").write_bytes(struct.pack(f"<{count}I", *((i * i + i // 7) % 60 for i in range(count))))
