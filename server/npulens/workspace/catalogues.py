"""The catalogue that a configuration asks for."""

from npulens.catalog.loader import load_catalogue, with_verified_names
from npulens.catalog.tables import Catalogue
from npulens.workspace.configuration import Configuration, is_selected


def configured_catalogue(configuration: Configuration) -> Catalogue:
    """The rules, among them those of the user's files.

    The list of all verified names is read only where the rule that needs it is wanted.

    Raises:
        CatalogueError: A file cannot be used.
    """
    catalogue = load_catalogue(configuration.extend_rules)
    rule = catalogue.rule_named("native-api-unverified")
    if rule is not None and is_selected(rule, configuration):
        return with_verified_names(catalogue)
    return catalogue
