"""Read on images, PDF files and notebooks."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import struct
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from retinue.tools.base import Refused, ToolContext, ToolResult
from retinue.tools.errors import ToolError
from retinue.tools.files.read.constants import IMAGE_BYTES, IMAGE_EDGE, PDF_BYTES
from retinue.tools.files.read.images import picture, webp_size
from retinue.tools.files.read.tool import Read, ReadInput, ReadOutput
from retinue.tools.files.state import FileState
from retinue.tools.shell.runner import KeeperShell


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    return ToolContext(agent="a~1", cwd=tmp_path, root=tmp_path, files=FileState(), shell=KeeperShell())


async def look(ctx: ToolContext, name: str, **more: object) -> tuple[str, ToolResult[ReadOutput]]:
    tool, args = Read(), ReadInput.model_validate({"file_path": name, **more})
    verdict = await tool.validate_input(args, ctx)
    if isinstance(verdict, Refused):
        raise ToolError(f"{verdict.code}: {verdict.message}")
    result = await tool.call(args, ctx, lambda _: None)
    return tool.to_content(result.data), result


# --- images ----------------------------------------------------------------------------------------------------------


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    size = width * height * len(mode)
    return Image.frombytes(mode, (width, height), random.Random(7).randbytes(size))


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("kind", "media_type"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"), ("WEBP", "image/webp")]
)
async def test_a_small_image_is_shown_as_it_is(ctx: ToolContext, kind: str, media_type: str) -> None:
    data = saved(Image.new("RGB", (40, 30), "red"), kind)
    (ctx.root / "a.dat").write_bytes(data)  # the name says nothing
    text, result = await look(ctx, "a.dat")
    assert text == f"{ctx.root}/a.dat: {media_type}, 40 x 30 pixels."
    (shown,) = result.attachments
    assert (shown.media_type, shown.data, shown.tokens) == (media_type, data, 2)


async def test_a_large_image_is_made_to_fit_and_the_scale_is_told(ctx: ToolContext) -> None:
    (ctx.root / "a.png").write_bytes(saved(Image.new("RGB", (5_000, 1_000), "blue"), "PNG"))
    text, result = await look(ctx, "a.png")
    assert "5000 x 1000 pixels, shown with 2000 x 400 (multiply positions in it by 2.50)" in text
    shown = Image.open(BytesIO(result.attachments[0].data))
    assert (shown.format, shown.size) == ("PNG", (2_000, 400))


async def test_a_heavy_image_becomes_a_jpeg_of_the_same_pixels(ctx: ToolContext) -> None:
    (ctx.root / "a.png").write_bytes(saved(noise(800, 800, "RGBA"), "PNG"))
    _, result = await look(ctx, "a.png")
    (sent,) = result.attachments
    assert sent.media_type == "image/jpeg"
    assert Image.open(BytesIO(sent.data)).size == (800, 800)
    assert len(sent.data) < (ctx.root / "a.png").stat().st_size


def test_the_noisiest_image_still_fits_what_models_take() -> None:
    drawn = picture(saved(noise(3_000, 3_000), "JPEG", quality=95), "image/jpeg")
    assert drawn.size == (IMAGE_EDGE, IMAGE_EDGE)
    assert len(base64.b64encode(drawn.data)) < 5_000_000


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_every_mode_of_pixels_can_be_sent(mode: str) -> None:
    data = saved(Image.new(mode, (IMAGE_EDGE + 100, 10)), "PNG")
    drawn = picture(data, "image/png")
    assert drawn.size == (IMAGE_EDGE, 10)
    assert Image.open(BytesIO(drawn.data)).size == drawn.size


def test_a_photo_is_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    drawn = picture(saved(Image.new("RGB", (40, 20)), "JPEG", exif=exif), "image/jpeg")
    assert drawn.size == (20, 40)


@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
async def test_of_an_animation_the_first_frame_is_shown(ctx: ToolContext, kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "lime", "blue")]
    (ctx.root / "a").write_bytes(saved(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True))
    text, result = await look(ctx, "a")
    assert "the first of 3 frames" in text
    shown = Image.open(BytesIO(result.attachments[0].data)).convert("RGB")
    assert shown.getpixel((3, 3)) == (255, 0, 0)


def bomb(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0" * 10_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bomb(50_000, 50_000), "50000 x 50000 pixels, more than"),
        (b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x3f\0\xff\x3f\0" + b"\0" * 40, "16384 x 16384 pixels, more than"),
        (saved(Image.new("RGB", (50, 50)), "PNG")[:55], "broken or cut short|no valid image"),
        (bomb(100, 100)[:60], "broken or cut short|no valid image"),
        (b"\xff\xd8\xff\xe0 and no more", "no valid image"),
        (b"GIF89a", "no valid image"),
        (b"RIFF\0\0\0\0WEBP", "no valid image"),
    ],
)
async def test_a_bomb_and_a_broken_image_are_refused(ctx: ToolContext, data: bytes, message: str) -> None:
    (ctx.root / "a.png").write_bytes(data)
    with pytest.raises(ToolError, match=message):
        await look(ctx, "a.png")


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": b"Exif\0\0MM\0*"}])
def test_the_size_of_a_webp_is_read_from_its_header(options: dict[str, object]) -> None:
    assert webp_size(saved(Image.new("RGB", (123, 45)), "WEBP", **options)) == (123, 45)


async def test_an_image_may_not_be_overwritten_as_if_its_bytes_were_known(ctx: ToolContext) -> None:
    (ctx.root / "a.png").write_bytes(saved(Image.new("RGB", (4, 4)), "PNG"))
    await look(ctx, "a.png")
    seen = ctx.files.get(ctx.root / "a.png")
    assert seen is not None
    assert seen.partial
    text, again = await look(ctx, "a.png")
    assert "has not changed" in text
    assert again.attachments == ()


# --- PDF -------------------------------------------------------------------------------------------------------------


def pdf(pages: int, *, password: str = "", filler: int = 0) -> bytes:
    writer = PdfWriter()
    for number in range(1, pages + 1):
        page = writer.add_blank_page(200, 200)
        content = DecodedStreamObject()
        noise_text = random.Random(number).randbytes(filler).hex() if filler else ""
        content.set_data(f"BT /F1 12 Tf 10 100 Td (page number {number}) Tj ET % {noise_text}".encode())
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        page[NameObject("/Contents")] = writer._add_object(content)  # pyright: ignore[reportPrivateUsage]
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def texts(data: bytes) -> list[str]:
    return [page.extract_text() for page in PdfReader(BytesIO(data)).pages]


async def test_a_short_pdf_is_shown_whole_and_as_it_is(ctx: ToolContext) -> None:
    (ctx.root / "a.pdf").write_bytes(pdf(10))
    text, result = await look(ctx, "a.pdf")
    assert text == f"{ctx.root}/a.pdf: PDF, pages 1 to 10 of 10."
    (shown,) = result.attachments
    assert (shown.media_type, shown.data) == ("application/pdf", (ctx.root / "a.pdf").read_bytes())


@pytest.mark.parametrize(
    ("pages", "numbers"), [("3", [3]), ("2-4", [2, 3, 4]), (" 11 - 12 ", [11, 12]), ("11-20", [11, 12])]
)
async def test_named_pages_are_shown_alone(ctx: ToolContext, pages: str, numbers: list[int]) -> None:
    (ctx.root / "a.pdf").write_bytes(pdf(12))
    text, result = await look(ctx, "a.pdf", pages=pages)
    assert ("page 3 of 12" if len(numbers) == 1 else f"pages {numbers[0]} to {numbers[-1]} of 12") in text
    assert texts(result.attachments[0].data) == [f"page number {number}" for number in numbers]


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        (None, r'The PDF has 11 pages, too many to show at once. .* such as "1-5"'),
        ("12", "The PDF has only 11 pages"),
        ("1-21", "3: .* is 21 pages; one call shows at most 20"),
        ("0", "3: .* is no range of pages"),
        ("5-3", "3: .* is no range of pages"),
        ("a", "3: .* is no range of pages"),
        ("", "3: .* is no range of pages"),
    ],
)
async def test_a_range_that_cannot_be_shown_says_why(ctx: ToolContext, pages: str | None, message: str) -> None:
    (ctx.root / "a.pdf").write_bytes(pdf(11))
    with pytest.raises(ToolError, match=message):
        await look(ctx, "a.pdf", pages=pages)


async def test_an_encrypted_a_broken_and_an_oversized_pdf_are_named_as_such(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ctx.root / "locked.pdf").write_bytes(pdf(1, password="x"))
    with pytest.raises(ToolError, match="encrypted and needs a password"):
        await look(ctx, "locked.pdf")
    for broken in (b"%PDF-1.7 and no more", b"%PDF-1.7\n" + b"\0" * 10_000):
        (ctx.root / "broken.pdf").write_bytes(broken)
        with pytest.raises(ToolError, match="broken"):
            await look(ctx, "broken.pdf")
    (ctx.root / "a.txt").write_text("text")
    with pytest.raises(ToolError, match="is no PDF"):
        await look(ctx, "a.txt", pages="1")
    monkeypatch.setattr("retinue.tools.files.read.tool.PDF_FILE_BYTES", 10)
    (ctx.root / "big.pdf").write_bytes(pdf(1))
    with pytest.raises(ToolError, match="files of its kind are read up to 10"):
        await look(ctx, "big.pdf")


def bomb_pdf() -> bytes:
    """Half a gigabyte of zeros, as the table of all objects."""
    packer = zlib.compressobj(1)
    table = b"".join(packer.compress(bytes(10_000_000)) for _ in range(50)) + packer.flush()
    head = b"<</Type/XRef/W[1 8 8]/Size 200000000/Root 2 0 R/Filter/FlateDecode/Length %d>>" % len(table)
    body = b"%PDF-1.5\n"
    return body + b"1 0 obj\n%b\nstream\n%b\nendstream\nendobj\nstartxref\n%d\n%%%%EOF" % (head, table, len(body))


def endless_pdf() -> bytes:
    """A page tree that is its own child."""
    body = b"%PDF-1.4\n"
    places: list[int] = []
    for number, what in ((1, b"<</Type/Catalog/Pages 2 0 R>>"), (2, b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>")):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, what)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 3\n0000000000 65535 f \n%btrailer\n<</Size 3/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
    return body + head % (table, len(body))


@pytest.mark.parametrize("make", [bomb_pdf, endless_pdf])
async def test_a_pdf_that_is_made_to_hurt_is_refused_soon(ctx: ToolContext, make: Callable[[], bytes]) -> None:
    (ctx.root / "a.pdf").write_bytes(make())
    async with asyncio.timeout(60):
        with pytest.raises(ToolError, match="broken"):
            await look(ctx, "a.pdf")


async def test_pages_that_are_too_heavy_are_refused_and_one_alone_comes_as_text(ctx: ToolContext) -> None:
    (ctx.root / "a.pdf").write_bytes(pdf(2, filler=PDF_BYTES))
    with pytest.raises(ToolError, match="ask for fewer pages"):
        await look(ctx, "a.pdf")
    text, result = await look(ctx, "a.pdf", pages="2")
    assert text.endswith("too large to be shown; its text.\npage number 2")
    assert result.attachments == ()


async def test_a_pdf_that_takes_too_long_is_given_up(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.tools.files.read.pdf.PDF_SECONDS", 0.0)
    (ctx.root / "a.pdf").write_bytes(pdf(1))
    with pytest.raises(ToolError, match="took longer than"):
        await look(ctx, "a.pdf")


# --- notebooks -------------------------------------------------------------------------------------------------------


def notebook(*cells: Mapping[str, object], minor: int = 5) -> str:
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}, indent=1)


def code(source: object, *outputs: Mapping[str, object], **more: object) -> dict[str, object]:
    fixed: dict[str, object] = {"cell_type": "code", "execution_count": 3, "metadata": {}}
    return {**fixed, "source": source, "outputs": list(outputs), **more}


async def test_cells_come_with_their_ids_sources_and_outputs(ctx: ToolContext) -> None:
    image = base64.b64encode(saved(Image.new("RGB", (5, 5)), "PNG")).decode()
    stream = {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]}
    failure = {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": ["\x1b[31mline 1\x1b[0m"]}
    plot = {"output_type": "display_data", "data": {"image/png": image, "text/plain": "<Figure>"}, "metadata": {}}
    other = {"output_type": "execute_result", "data": {"application/x-unknown": "?"}, "metadata": {}}
    (ctx.root / "a.ipynb").write_text(
        notebook(
            {"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# Title\n", "text"]},
            code("print(1)\n", stream, failure, plot, other, id="c<1>"),
            code("pass", id=None),
        )
    )
    text, result = await look(ctx, "a.ipynb")
    assert text == (
        '<cell id="intro" type="markdown">\n# Title\ntext\n</cell>\n'
        '<cell id="c&lt;1&gt;" type="code" language="python" execution_count="3">\nprint(1)\n<output>\n'
        "a\nb\nE: bad\nline 1\n[image 1]\n<Figure>\n[application/x-unknown: not shown]\n</output>\n</cell>\n"
        '<cell id="cell-2" type="code" language="python" execution_count="3">\npass\n</cell>'
    )
    assert [shown.media_type for shown in result.attachments] == ["image/png"]


async def test_outputs_and_images_of_a_notebook_are_bounded(ctx: ToolContext) -> None:
    image = base64.b64encode(saved(Image.new("RGB", (5, 5)), "PNG")).decode()
    plots = [{"output_type": "display_data", "data": {"image/png": image}} for _ in range(25)]
    broken = {"output_type": "display_data", "data": {"image/png": "AAAA"}}
    loud = {"output_type": "stream", "text": "x" * 10_500}
    (ctx.root / "a.ipynb").write_text(notebook(code("a", loud), code("b", broken, *plots)))
    text, result = await look(ctx, "a.ipynb")
    assert "[500 more characters of output are not shown]" in text
    assert "[image/png: it cannot be decoded]" in text
    assert "not shown, these are more than 20 images" in text
    assert len(result.attachments) == 20


async def test_a_notebook_is_paged_by_cells_and_too_many_are_a_partial_view(ctx: ToolContext) -> None:
    (ctx.root / "a.ipynb").write_text(notebook(*(code(f"n = {n}\n" + "#" * 40_000) for n in range(5))))
    text, _ = await look(ctx, "a.ipynb")
    assert "PARTIAL view" in text
    assert "Cells 1 to 2 of 5 are shown. Read on with offset 3" in text
    text, _ = await look(ctx, "a.ipynb", offset=5)
    assert text.startswith('<cell id="cell-4"')
    text, _ = await look(ctx, "a.ipynb", offset=9)
    assert "only 5 cells: nothing at cell 9" in text
    (ctx.root / "b.ipynb").write_text(notebook(code("#" * 110_000)))
    with pytest.raises(ToolError, match="Cell 1 alone is larger"):
        await look(ctx, "b.ipynb")
    (ctx.root / "empty.ipynb").write_text(notebook())
    text, _ = await look(ctx, "empty.ipynb")
    assert "has no cells" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "no list of cells"),
        ('{"worksheets": []}', "no list of cells"),
        ('{"cells": [1]}', "one of its cells is no object"),
        ("[" * 200_000, "is not JSON"),
    ],
)
async def test_what_is_no_notebook_is_refused(ctx: ToolContext, content: str, message: str) -> None:
    (ctx.root / "a.ipynb").write_text(content)
    with pytest.raises(ToolError, match=message):
        await look(ctx, "a.ipynb")


def test_the_limits_are_those_of_the_interface() -> None:
    assert (IMAGE_EDGE, IMAGE_BYTES) == (2_000, 500_000)
