import io
import struct
import zlib
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from gradveil.data import images
from gradveil.data.base import silent
from gradveil.data.images import BrokenImageError, Decoded, Decoding, EncodedImage, decode_all
from gradveil.errors import DataError, SettingsError
from tests.data.official_files import encoded, picture, random_pixels


def decode(*contents: bytes, decoding: Decoding = Decoding()) -> Decoded:  # noqa: B008
    return decode_all(sources(contents), decoding, silent)


def sources(contents: Sequence[bytes]) -> list[EncodedImage]:
    return [EncodedImage(f"image {number}", partial(bytes, content)) for number, content in enumerate(contents)]


def pixels_of(image: Image.Image) -> torch.Tensor:
    """Return 1×3×H×W or 1×1×H×W."""
    array = np.asarray(image)
    return torch.from_numpy(array.transpose(2, 0, 1).copy() if array.ndim == 3 else array.copy()[None])[None]


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "JPEG", "WEBP", "GIF", "JPEG2000", "TGA", "ICO"])
def test_the_usual_formats_are_read(kind: str) -> None:
    content = encoded(picture(16, 16, 3), kind)
    expected = Image.open(io.BytesIO(content)).convert("RGB")
    assert torch.equal(decode(content).images, pixels_of(expected))


def test_grey_images_alone_have_one_channel_and_among_others_three() -> None:
    grey, colour = picture(8, 8), picture(8, 8, 3)
    assert torch.equal(decode(encoded(grey)).images, pixels_of(grey))
    both = decode(encoded(grey), encoded(colour)).images
    assert torch.equal(both, torch.cat([pixels_of(grey.convert("RGB")), pixels_of(colour)]))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_order_of_grey_and_colour_does_not_matter(order: tuple[int, int]) -> None:
    contents = [encoded(picture(8, 8)), encoded(picture(8, 8, 3))]
    assert decode(*(contents[number] for number in order)).images.shape == (2, 3, 8, 8)


def test_channels_can_be_forced() -> None:
    grey, colour = picture(8, 8), picture(8, 8, 3)
    assert torch.equal(decode(encoded(grey), decoding=Decoding(channels=3)).images, pixels_of(grey.convert("RGB")))
    assert torch.equal(decode(encoded(colour), decoding=Decoding(channels=1)).images, pixels_of(colour.convert("L")))


def test_a_palette_becomes_colour() -> None:
    image = picture(8, 8, 3).quantize(16)
    assert image.mode == "P"
    assert torch.equal(decode(encoded(image)).images, pixels_of(image.convert("RGB")))


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_what_is_transparent_becomes_white(mode: str) -> None:
    image = picture(8, 8, 3).convert(mode)
    alpha = Image.fromarray(np.repeat(np.array([[0, 255]], dtype=np.uint8), [4, 4], axis=1).repeat(8, axis=0))
    image.putalpha(alpha)
    decoded = decode(encoded(image)).images
    assert decoded.shape[1] == (3 if mode == "RGBA" else 1)
    assert (decoded[..., :4] == 255).all()
    assert torch.equal(decoded[..., 4:], pixels_of(image.convert("RGB" if mode == "RGBA" else "L"))[..., 4:])


def test_a_transparent_colour_of_a_palette_becomes_white() -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((0, 0), 1)
    stream = io.BytesIO()
    image.save(stream, "PNG", transparency=bytes([0, 255]))
    decoded = decode(stream.getvalue()).images[0]
    assert decoded[:, 0, 0].tolist() == [200, 100, 50]
    assert decoded[:, 3, 3].tolist() == [255, 255, 255]


def test_a_transparent_grey_and_colour_without_alpha_become_white() -> None:
    grey, colour = Image.new("L", (4, 4), 7), Image.new("RGB", (4, 4), (1, 2, 3))
    for image, transparent in ((grey, 7), (colour, (1, 2, 3))):
        stream = io.BytesIO()
        image.save(stream, "PNG", transparency=transparent)
        assert (decode(stream.getvalue()).images == 255).all()


def test_cmyk_becomes_colour() -> None:
    image = picture(8, 8, 3).convert("CMYK")
    content = encoded(image, "TIFF")
    assert torch.equal(decode(content).images, pixels_of(image.convert("RGB")))
    assert decode(encoded(image, "JPEG")).images.shape == (1, 3, 8, 8)


def test_one_bit_becomes_black_and_white() -> None:
    image = picture(8, 8).convert("1")
    assert torch.equal(decode(encoded(image)).images, pixels_of(image.convert("L")))


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_keep_the_upper_eight(kind: str) -> None:
    values = np.array([[0, 255, 256, 65535], [0x1234, 0x80FF, 0x7F00, 1]], dtype=np.uint16)
    decoded = decode(encoded(Image.fromarray(values), kind)).images[0, 0]
    assert decoded.tolist() == [[0, 0, 1, 255], [0x12, 0x80, 0x7F, 0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((4, 4), dtype=np.float32), "floating-point values"),
        (np.full((4, 4), 70_000, dtype=np.int32), "beyond 16 bits"),
        (np.full((4, 4), -1, dtype=np.int32), "beyond 16 bits"),
    ],
)
def test_values_of_unknown_range_are_refused(
    values: np.ndarray[tuple[int, int], np.dtype[np.int32]], message: str
) -> None:
    with pytest.raises(BrokenImageError, match=message):
        decode(encoded(Image.fromarray(values), "TIFF"))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_a_photograph_is_turned_upright(kind: str) -> None:
    image = Image.new("RGB", (16, 8), "red")
    image.paste("blue", (0, 0, 8, 8))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    stream = io.BytesIO()
    image.save(stream, kind, exif=exif)
    decoded = decode(stream.getvalue()).images[0]
    assert decoded.shape == (3, 16, 8)
    assert decoded[2, 3, 4] > 200  # blue on top
    assert decoded[0, 12, 4] > 200


def test_of_an_animation_the_first_frame_counts() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(
        stream, "GIF", save_all=True, append_images=[Image.new("RGB", (8, 8), "blue")], duration=10
    )
    assert decode(stream.getvalue()).images[0, :, 0, 0].tolist() == [255, 0, 0]


def test_images_of_one_size_keep_it() -> None:
    contents = [encoded(picture(9, 13, 3, seed=seed)) for seed in range(3)]
    assert decode(*contents).images.shape == (3, 3, 9, 13)


def test_images_of_different_sizes_become_the_default_size() -> None:
    large, small = picture(80, 100, 3), picture(30, 20, 3)
    decoded = decode(encoded(large), encoded(small)).images
    for image, pixels in zip((large, small), decoded, strict=True):
        expected = ImageOps.fit(image, (64, 64), Image.Resampling.BICUBIC)
        assert torch.equal(pixels[None], pixels_of(expected))


def test_a_size_that_is_asked_for_is_given() -> None:
    assert decode(encoded(picture(9, 13, 3)), decoding=Decoding(size=32)).images.shape == (1, 3, 32, 32)


@pytest.mark.parametrize("settings", [{"size": 7}, {"size": 1025}, {"channels": 2}])
def test_settings_out_of_range_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        Decoding(**settings)  # type: ignore[arg-type]


def broken() -> dict[str, bytes]:
    whole = encoded(picture(32, 32, 3), "JPEG")
    png = encoded(picture(32, 32, 3), "PNG")
    return {
        "empty": b"",
        "text": b"this is no image",
        "cut JPEG": whole[: len(whole) // 2],
        "cut PNG": png[: len(png) // 2],
        "header only": whole[:30],
        "PNG with a wrong checksum": png[:60] + bytes([png[60] ^ 1]) + png[61:],
        "PostScript, which Pillow would hand to another program": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    }


@pytest.mark.parametrize("name", broken())
def test_a_broken_image_is_named_or_skipped_and_counted(name: str, caplog: pytest.LogCaptureFixture) -> None:
    good = encoded(picture(32, 32, 3, seed=5))
    contents = [good, broken()[name], good]
    with pytest.raises(BrokenImageError, match=r"image 1 cannot be decoded as an image \(.+\).*skip-broken"):
        decode(*contents)
    decoded = decode(*contents, decoding=Decoding(skip_broken=True))
    assert decoded.kept.tolist() == [0, 2]
    assert decoded.skipped == ("image 1",)
    assert len(decoded.images) == 2
    assert "left out 1 of 3 images that cannot be decoded: image 1" in caplog.text


def test_none_left_is_an_error() -> None:
    with pytest.raises(DataError, match="none of the 2 images"):
        decode(b"x", b"y", decoding=Decoding(skip_broken=True))


def png_claiming(width: int, height: int) -> bytes:
    """Make a PNG of a few bytes whose header promises a large image."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(10))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [8_200, 9_600, 20_000])
def test_an_image_that_would_swell_is_refused_by_its_header(side: int) -> None:
    with pytest.raises(BrokenImageError, match="pixels"):
        decode(png_claiming(side, side))


def test_more_than_memory_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_BYTES", 1000)
    with pytest.raises(DataError, match="choose a smaller size with size=N"):
        decode(*[encoded(picture(32, 32, 3))] * 2)


def test_progress_is_reported_for_each_image() -> None:
    seen: list[int] = []
    contents = [encoded(picture(8, 8, 3))] * 3
    decode_all(sources(contents), Decoding(), lambda what, done, total: seen.append(done * 10 + total))  # noqa: ARG005
    assert seen == [13, 23, 33]


def test_a_random_image_survives_the_way_through_a_file() -> None:
    array = random_pixels(11, 7, 3, seed=3)
    assert np.array_equal(decode(encoded(Image.fromarray(array))).images[0].numpy(), array.transpose(2, 0, 1))
