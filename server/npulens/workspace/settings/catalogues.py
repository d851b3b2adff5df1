"""The catalogue for a configuration."""

from npulens.catalog.loader import load_catalogue, with_verified_names
from npulens.catalog.messages import about, message
from npulens.catalog.rule_file import CatalogueError
from npulens.catalog.tables import Catalogue
from npulens.fused.patterns import read_patterns
from npulens.workspace.settings.configuration import Configuration, is_selected


def configured_catalogue(configuration: Configuration) -> Catalogue:
    """The rules, among them those of the user's files.

    The list of all verified names is read only where the rule that needs it is wanted.

    Raises:
        CatalogueError: A file cannot be used.
    """
    catalogue = load_catalogue(configuration.extend_rules)
    if any(path.suffix == ".py" for path in configuration.extend_rules):
        _check_patterns(catalogue)
    needing = (rule for rule in catalogue.rules.values() if rule.verified_names)
    if any(is_selected(rule, configuration) for rule in needing):
        return with_verified_names(catalogue)
    return catalogue


class Catalogues:
    """Catalogues that stay loaded; equal settings share one, and so may threads."""

    def __init__(self) -> None:
        self._loaded: dict[Configuration, Catalogue] = {}

    def of(self, configuration: Configuration) -> Catalogue:
        """The catalogue for a configuration.

        Raises:
            CatalogueError: A file cannot be used.
        """
        key = Configuration(
            select=configuration.select,
            extend_select=configuration.extend_select,
            ignore=configuration.ignore,
            extend_rules=configuration.extend_rules,
        )
        loaded = self._loaded.get(key)
        if loaded is None:  # without a lock: loading rules may take long, and others need not wait
            loaded = self._loaded.setdefault(key, configured_catalogue(key))
        return loaded

    def forget(self) -> None:
        """Read the rule files again when next called."""
        self._loaded.clear()


def _check_patterns(catalogue: Catalogue) -> None:
    """See now, and not in the middle of a run, whether the user's patterns can be used."""
    for pattern in read_patterns(catalogue.patterns):
        if catalogue.rule_named(pattern.rule) is None:
            problem = message("pattern.no-rule", rule=pattern.rule)
            raise CatalogueError(about(pattern.name, problem))
