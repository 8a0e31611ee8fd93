"""Images as a model takes them: of a known kind, whole, not too large. Pillow is loaded when the first one is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from retinue.tools.base import Attachment
from retinue.tools.errors import ToolError
from retinue.tools.files.read.constants import IMAGE_BYTES, IMAGE_EDGE, IMAGE_MOST_BYTES, IMAGE_PIXELS

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

_PIXELS_PER_TOKEN = 750
_MOST_TOKENS = 4_800
_QUALITIES = (85, 70, 50, 30)
_ORIENTATION = 0x0112


@dataclass(frozen=True, slots=True)
class Picture:
    """`data` is what is sent; `original` the size of the file's image, `size` of what is sent, in pixels."""

    data: bytes
    media_type: str
    original: tuple[int, int]
    size: tuple[int, int]
    frames: int

    def attachment(self) -> Attachment:
        tokens = min(math.ceil(self.size[0] * self.size[1] / _PIXELS_PER_TOKEN), _MOST_TOKENS)
        return Attachment(self.media_type, self.data, tokens)


def kind_of(head: bytes) -> str | None:
    """The media type by the first bytes; names of files lie. Pure."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def picture(data: bytes, media_type: str) -> Picture:
    """ToolError for what is broken (a model's server would refuse the whole request), or too many pixels.

    The bytes stay as they are where nothing has to change. Of an animation the first frame is sent.
    """
    opened = _opened(data, media_type)
    original = opened.size
    if original[0] * original[1] > IMAGE_PIXELS:
        raise ToolError(f"The image has {original[0]} x {original[1]} pixels, more than {IMAGE_PIXELS:,}.")
    try:
        frames = int(getattr(opened, "n_frames", 1))
        turned = opened.getexif().get(_ORIENTATION, 1) != 1
        if max(original) > IMAGE_EDGE:
            opened.draft(None, (IMAGE_EDGE, IMAGE_EDGE))  # a JPEG can be decoded at half its size, or less
        opened.load()
        plain = frames == 1 and not turned and max(original) <= IMAGE_EDGE and len(data) <= IMAGE_BYTES
        if plain:
            return Picture(data, media_type, original, original, frames)
        image = _fitted(opened)
        sent, sent_type = _encoded(image, media_type)
    except ToolError:
        raise
    except Exception as error:
        raise ToolError(f"The image cannot be decoded: it is broken or cut short ({type(error).__name__}).") from None
    return Picture(sent, sent_type, original, image.size, frames)


def _opened(data: bytes, media_type: str) -> ImageFile:
    """Only the header is read. Not by Pillow's own `open`, whose warning about sizes is no refusal."""
    try:
        match media_type:
            case "image/png":
                from PIL.PngImagePlugin import PngImageFile as Kind
            case "image/jpeg":
                from PIL.JpegImagePlugin import JpegImageFile as Kind
            case "image/gif":
                from PIL.GifImagePlugin import GifImageFile as Kind
            case _:
                from PIL.WebPImagePlugin import WebPImageFile as Kind

                width, height = webp_size(data)
                if width * height > IMAGE_PIXELS:  # its decoder takes memory for all of them at once
                    raise ToolError(f"The image has {width} x {height} pixels, more than {IMAGE_PIXELS:,}.")
        return Kind(BytesIO(data))
    except ToolError:
        raise
    except Exception:
        raise ToolError(f"The file looks like {media_type}, but it is no valid image.") from None


def webp_size(data: bytes) -> tuple[int, int]:
    """From the header, of all three kinds. Pure."""
    chunk, body = data[12:16], data[20:30]
    if chunk == b"VP8X":
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if chunk == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF


def _fitted(opened: ImageFile) -> Image:
    from PIL import ImageOps
    from PIL.Image import Resampling

    image = ImageOps.exif_transpose(opened)
    if image.mode not in ("RGB", "RGBA", "L"):
        alpha = image.mode in ("LA", "PA") or "transparency" in image.info
        image = image.convert("RGBA" if alpha else "RGB")
    if max(image.size) > IMAGE_EDGE:
        image.thumbnail((IMAGE_EDGE, IMAGE_EDGE), Resampling.LANCZOS)
    return image


def _encoded(image: Image, media_type: str) -> tuple[bytes, str]:
    if media_type != "image/jpeg":
        png = _saved(image, "PNG")
        if len(png) <= IMAGE_BYTES:
            return png, "image/png"
    flat = _opaque(image)
    for quality in _QUALITIES:
        jpeg = _saved(flat, "JPEG", quality=quality)
        if len(jpeg) <= IMAGE_MOST_BYTES:
            return jpeg, "image/jpeg"
    raise ToolError("The image cannot be made small enough.")


def _opaque(image: Image) -> Image:
    from PIL import Image as Images

    if image.mode != "RGBA":
        return image
    ground = Images.new("RGB", image.size, "white")
    ground.paste(image, mask=image.getchannel("A"))
    return ground


def _saved(image: Image, kind: str, **options: int) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()
