"""The board: pages of cards and the status line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.plain_text import plain_line
from agentmon.worker.import_progress import find_running_import

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from agentmon.domain.board import BoardPage, BoardSort, Card, ColumnRequest
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.domain.ids import TaskId
    from agentmon.domain.spending import Spent
    from agentmon.domain.task_status import TaskStatus
    from agentmon.domain.tasks import Workspace
    from agentmon.services.settings import SettingsService
    from agentmon.services.sightings import SightingService
    from agentmon.store.board_pages import BoardRepository
    from agentmon.store.setting_rows import SettingRepository


FILTERS_KEY: Final = "board.filters"
_LONGEST_NAME: Final = 60
_MOST_FILTERS: Final = 50


class BoardService:
    """Reads the board."""

    def __init__(
        self,
        repository: BoardRepository,
        settings: SettingsService,
        rows: SettingRepository,
        sightings: SightingService,
        clock: Clock,
        *,
        import_progress: Path,
    ) -> None:
        """Make the service.

        Args:
            repository: Reads the database.
            settings: Say what holds where the database does not.
            rows: Keep the saved filters.
            sightings: Tell of runs that no worker looks after.
            clock: Tells the present.
            import_progress: The file that is there while histories of agents are imported.
        """
        self._import_progress = import_progress
        self._repository = repository
        self._settings = settings
        self._rows = rows
        self._sightings = sightings
        self._clock = clock

    async def page(self, workspace: Workspace | None, requests: Sequence[ColumnRequest]) -> BoardPage:
        """Return the asked part of each column and the status line, from one moment; of all workspaces for None."""
        page = await self._repository.page(
            workspace,
            requests,
            running_limit=self._settings.default_worker_settings().max_running,
            money_words=self._settings.default_money_words(),
            board_words=self._settings.default_board_words(),
        )
        if page.status_line.running or page.status_line.queued:
            page = await self._seen(page)
        running = find_running_import(self._import_progress)
        return page if running is None else page._replace(import_percent=running.progress.percent)

    async def _seen(self, page: BoardPage) -> BoardPage:
        """Return the page with what is known of the runs on it that nobody looks after."""
        worker_seen_at = await self._sightings.worker_missed_since(is_running=page.status_line.running > 0)
        if worker_seen_at is None:
            return page
        known = await self._sightings.look()
        columns = {
            status: column._replace(cards=tuple(card.seen(known.get(card.execution_id)) for card in column.cards))
            for status, column in page.columns.items()
        }
        return page._replace(columns=columns, status_line=page.status_line._replace(worker_seen_at=worker_seen_at))

    async def filters(self) -> Mapping[str, str]:
        """Return the saved filters by their names, in the order in which they were saved."""
        return _filters_of((await self._rows.all()).get(FILTERS_KEY))

    async def find_filter(self, name: str) -> str:
        """Return the saved filter of the name.

        Raises:
            NotFoundError: There is none; the hint names all.
        """
        saved = await self.filters()
        _require_saved(name, saved)
        return saved[name]

    async def save_filter(self, name: str, text: str, *, actor: Actor) -> None:
        """Save the filter under the name, over one that has it.

        Raises:
            UsageError: The name or the filter is empty, or they are too many.
        """
        name, text = plain_line(" ".join(name.split()), max_characters=_LONGEST_NAME), " ".join(text.split())
        if not name or not text:
            raise UsageError("a saved filter needs a name and a text", hint="agentmon board --filter TEXT --save NAME")

        def changed(stored: object) -> dict[str, str]:
            saved = {**_filters_of(stored), name: text}
            if len(saved) > _MOST_FILTERS:
                raise UsageError(f"{_MOST_FILTERS} filters are saved already", hint="forget one of them first")
            return saved

        await self._rows.change(FILTERS_KEY, changed, actor=actor, at=self._clock.now())

    async def forget_filter(self, name: str, *, actor: Actor) -> None:
        """Forget the saved filter of the name.

        Raises:
            NotFoundError: There is none.
        """

        def changed(stored: object) -> dict[str, str]:
            saved = _filters_of(stored)
            _require_saved(name, saved)
            return {other: text for other, text in saved.items() if other != name}

        await self._rows.change(FILTERS_KEY, changed, actor=actor, at=self._clock.now())

    async def spent(self, task_ids: Sequence[TaskId]) -> dict[str, Spent]:
        """Return by task what all of its runs took together; nothing of tasks that never ran."""
        return await self._repository.spent(task_ids)

    async def alternatives(self, task_id: TaskId) -> tuple[Card, ...]:
        """Return the cards that are alternatives of each other, the task's own among them, by number.

        Empty for a task without any.
        """
        cards = await self._repository.alternatives(task_id, money_words=self._settings.default_money_words())
        known = await self._sightings.look() if any(card.state is not None for card in cards) else {}
        return tuple(card.seen(known.get(card.execution_id)) for card in cards)

    async def locate(
        self, workspace: Workspace | None, task_id: TaskId, text_filter: str = "", *, sort: BoardSort | None = None
    ) -> tuple[TaskStatus, int] | None:
        """Return the column of a task and its index there among the cards that pass the filter.

        None when it is not on the board of the workspace, or of all for None. The index is that in the given order, or
        in the one that is set.
        """
        return await self._repository.locate(
            workspace, task_id, text_filter, sort=sort, board_words=self._settings.default_board_words()
        )


def _filters_of(stored: object) -> dict[str, str]:
    return {str(name): str(text) for name, text in stored.items()} if isinstance(stored, dict) else {}


def _require_saved(name: str, saved: Mapping[str, str]) -> None:
    if name not in saved:
        names = ", ".join(saved)
        raise NotFoundError(
            f"there is no saved filter {name!r}",
            hint=f"saved are: {names}" if names else "agentmon board --filter TEXT --save NAME saves one",
        )
