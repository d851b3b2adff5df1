"""A text in each language that npulens speaks."""

from typing import Literal, NamedTuple

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


class LocalizedText(NamedTuple):
    """One wording in each language npulens speaks."""

    en: str
    zh: str

    def in_language(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en

    def behind(self, before: "LocalizedText | None") -> "LocalizedText":
        """This sentence behind others, if there are any."""
        if before is None:
            return self
        return LocalizedText(f"{before.en} {self.en}", f"{before.zh}{self.zh}")
