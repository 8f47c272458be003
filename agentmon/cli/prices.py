"""``agentmon prices``: what models cost, prices of one's own, and the newest price list."""

import os
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer

from agentmon.cli.context import JsonOption, require_person
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.registration import register, register_default
from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.paths import find_paths

group = typer.Typer(rich_markup_mode=None)

URL_VARIABLE = "AGENTMON_PRICES_URL"
"""Names another place that the newest price list is fetched from."""
_AFTER_A_CHANGE = "answers that are recorded keep their cost; `agentmon costs reprice` looks it up anew"

AtOption = Annotated[
    str | None, typer.Option("--at", metavar="DATE", help="The day, in UTC, such as 2026-03-01; today by default.")
]
ProviderOption = Annotated[
    str, typer.Option("--provider", metavar="NAME", help="Who sells it, such as anthropic, aws or openrouter.")
]


def prices(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show model prices, set your own, or update the list.

    Prices come with agentmon and need no network. Your own stand in prices.toml and count more than any list.

    Examples:
      agentmon prices show claude-opus-5-5
      agentmon prices set my-model --input 1.5 --output 6
      agentmon prices update
    """
    if context.invoked_subcommand is None:
        show(as_json=as_json)


def show(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="The model, or a part of its name.")] = None,
    at: AtOption = None,
    provider: ProviderOption = "",
    as_json: JsonOption = False,
) -> None:
    """Show the price of a model and where it comes from, or the models of the agents' vendors.

    Rates are dollars per million tokens, of web searches per thousand. A long prompt pays the higher rate for all of
    its tokens.

    Examples:
      agentmon prices show
      agentmon prices show haiku
      agentmon prices show claude-opus-4-6 --at 2026-03-01
      agentmon prices show us.anthropic.claude-opus-4-8-v1:0 --provider aws --json
    """
    from agentmon.cli.price_text import model_lines, models_lines, price_form  # noqa: PLC0415 - only it needs prices
    from agentmon.usage.prices.book import PriceBook  # noqa: PLC0415
    from agentmon.usage.prices.showing import show_model, show_models  # noqa: PLC0415

    paths = find_paths()
    book = PriceBook(paths.prices_file, paths.price_data_file)
    day = _day(at, "--at") or SystemClock().now().astimezone(UTC).date()
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    one = show_model(book, model, provider=provider, at=moment) if model else None
    found = () if one else show_models(book, model or "", at=moment)
    for problem in book.problems:
        tell(f"note: {problem}")
    told = {"day": day.isoformat(), "version": book.version}
    if one is not None:
        if as_json:
            say_document(told | price_form(one))
        else:
            say("\n".join(model_lines(one, day, book.version)))
    elif not found:
        raise NotFoundError(
            f"no price of {model} is known on {day.isoformat()}",
            hint=f"`agentmon prices set {model} --input … --output …` sets one; `agentmon prices show` lists models",
        )
    elif as_json:
        say_document({**told, "models": [price_form(price) for price in found]})
    else:
        say("\n".join(models_lines(found, day, book.version)))


def set_price(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="The model as the agent records it; * for any letters.")
    ],
    *,
    input_rate: Annotated[
        str | None, typer.Option("--input", metavar="DOLLARS", help="A million tokens of input.")
    ] = None,
    output_rate: Annotated[
        str | None, typer.Option("--output", metavar="DOLLARS", help="A million tokens of output.")
    ] = None,
    cache_read: Annotated[
        str | None, typer.Option("--cache-read", metavar="DOLLARS", help="A million tokens read from a cache.")
    ] = None,
    cache_write: Annotated[
        str | None, typer.Option("--cache-write", metavar="DOLLARS", help="A million tokens written to one.")
    ] = None,
    cache_write_1h: Annotated[
        str | None, typer.Option("--cache-write-1h", metavar="DOLLARS", help="The same, kept for an hour.")
    ] = None,
    web_search: Annotated[
        str | None, typer.Option("--web-search", metavar="DOLLARS", help="A thousand web searches.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="The first day, in UTC; always by default.")
    ] = None,
    speed: Annotated[
        str, typer.Option("--speed", metavar="SPEED", help="standard, fast, priority, flex or batch.")
    ] = "standard",
    provider: ProviderOption = "",
    as_json: JsonOption = False,
) -> None:
    """Set a price of your own in prices.toml; what else stands there stays, comments too.

    A rate that you do not name stays as it is in the list; a model that no list has pays the input rate for caches.

    Examples:
      agentmon prices set my-model --input 1.5 --output 6
      agentmon prices set claude-opus-5-5 --input 3.2 --output 16 --from 2026-12-01
      agentmon prices set "acme-*" --provider acme --input 0.4 --output 1.2 --cache-read 0.04
    """
    from agentmon.usage.prices.own_prices import write_own_price  # noqa: PLC0415 - only this command needs prices
    from agentmon.usage.prices.rates import Kind  # noqa: PLC0415

    told = {
        Kind.INPUT: input_rate,
        Kind.OUTPUT: output_rate,
        Kind.CACHE_READ: cache_read,
        Kind.CACHE_WRITE: cache_write,
        Kind.CACHE_WRITE_1H: cache_write_1h,
        Kind.WEB_SEARCH: web_search,
    }
    rates = {kind: _dollars(text, kind) for kind, text in told.items() if text is not None}
    if not rates:
        raise UsageError("which price?", hint="give --input and --output, or any other rate")
    require_person("change prices")
    file = find_paths().prices_file
    is_new = write_own_price(
        file, model=model.strip(), rates=rates, provider=provider.lower(), speed=speed, since=_day(since, "--from")
    )
    if as_json:
        shown = {str(kind): str(rate) for kind, rate in rates.items()}
        say_document({"file": str(file), "model": model, "is_new": is_new, "rates": shown})
        return
    words = ", ".join(f"{kind} ${rate}" for kind, rate in rates.items())
    say(f"{'set' if is_new else 'changed'}: {model}  {words}")
    say(f"in {file}")
    tell(_AFTER_A_CHANGE)


def update(as_json: JsonOption = False) -> None:
    """Fetch the newest price list of genai-prices; this is the only time that prices use the network.

    It counts until a newer package is installed. AGENTMON_PRICES_URL names another place to fetch it from.

    Examples:
      agentmon prices update
    """
    from agentmon.usage.prices.newest import fetch_newest  # noqa: PLC0415 - only this command needs the network

    require_person("change prices")
    fetched = fetch_newest(
        find_paths().price_data_file, now=SystemClock().now(), url=os.environ.get(URL_VARIABLE) or None
    )
    if as_json:
        say_document(
            {
                "url": fetched.url,
                "file": str(fetched.file),
                "providers": fetched.providers,
                "models": fetched.models,
                "is_new": fetched.is_new,
            }
        )
        return
    say(f"{'new prices' if fetched.is_new else 'the same prices as before'}: {fetched.models} models")
    say(f"from {fetched.url} in {fetched.file}")
    if fetched.is_new:
        tell(_AFTER_A_CHANGE)


def _dollars(text: str, kind: str) -> Decimal:
    try:
        rate = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        rate = Decimal("NaN")
    if not rate.is_finite() or rate < 0:
        raise UsageError(f"{text!r} is no price for {kind}", hint="write dollars, such as 2.5")
    return rate


def _day(text: str | None, option: str) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is no day", hint="write it as 2026-01-31") from error


register_default(group, prices)
register(group, "show", show)
register(group, "set", set_price)
register(group, "update", update)
