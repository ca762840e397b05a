"""The hash codes of tags in consume queues and subscriptions (Java's String.hashCode)."""


def tags_code(tags: str | None) -> int:
    """Returns the signed 32-bit hash code of a tag, or 0 if there is no tag (MessageExtBrokerInner.tagsString2tagsCode)."""
    return java_hash_code(tags) if tags else 0


def java_hash_code(text: str) -> int:
    """Returns the signed 32-bit hash code of a text (Java's String.hashCode): s[0]*31^(n-1) + ... over UTF-16 code units."""
    code = 0
    encoded = text.encode("utf-16-be", errors="surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        unit = high << 8 | low
        code = (code * 31 + unit) & 0xFFFFFFFF
    return code - 0x100000000 if code >= 0x80000000 else code
