"""The dialog that learns what a program can be asked to do, and stores what the person accepts of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentmon.domain.agents import Agent, CapabilitySource, DangerLevel
from agentmon.domain.capability_proposals import ProposalChange
from agentmon.domain.errors import AgentmonError
from agentmon.screens.agents.capability_preview import preview_of
from agentmon.screens.agents.proposal_rows import PROPOSAL_COLUMNS, proposal_detail, proposal_rows, sources_text
from agentmon.screens.bindings import PROPOSALS
from agentmon.screens.row_moves import RowMoves
from agentmon.widgets.cells import even_line, even_lines
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.key_footer import KeyFooter
from agentmon.widgets.row_table import RowTable

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.worker import Worker

    from agentmon.bootstrap import Services
    from agentmon.domain.capability_proposals import CapabilityProposal
    from agentmon.domain.programs import ScanProgress

FIRST_SOURCES: Final = (
    CapabilitySource.SCAN_HELP,
    CapabilitySource.SCAN_MAN,
    CapabilitySource.SCAN_FIG,
    CapabilitySource.SCAN_COMPLETION,
)
"""What is read at once; the others start more than the program's own help, so that a person asks for them."""
_FREE_WORDS: Final = "words"
_LONGEST_NAME: Final = 60
_MOST_PROBLEMS: Final = 3


class CapabilityProposals(RowMoves, Guarded, ModalScreen[Agent | None]):
    """A table of what was learned; ends with the agent that has the accepted capabilities, or with None.

    Nothing is stored before the person says so, and nothing of it takes the place of what the person changed.
    """

    CSS_PATH = "capability_proposals.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*PROPOSALS]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-tall")]  # noqa: RUF012 - Textual types it as an instance's
    AUTO_FOCUS = "#proposals"

    def __init__(self, services: Services, agent: Agent) -> None:
        """Make the dialog; it begins to read as soon as it is shown.

        Args:
            services: Scan and store.
            agent: Whose program is read.
        """
        super().__init__()
        self._services = services
        self._agent = agent
        self._sources: tuple[CapabilitySource, ...] = FIRST_SOURCES
        self._asked: str | None = None
        self._proposals: tuple[CapabilityProposal, ...] = ()
        self._marked: set[str] = set()
        self._is_marked_by_hand = False
        self._problems: list[str] = []
        self._progress = ""
        self._is_scanning = False
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Yield heading, what happens, the table, the whole of the proposal under the cursor, and the keys."""
        with Vertical(id="dialog"):
            name = even_line(self._agent.name, max_characters=_LONGEST_NAME)
            yield Static(Content(f"What {name} can be asked to do"), id="heading")
            yield Static(id="told")
            yield RowTable(PROPOSAL_COLUMNS, id="proposals")
            yield Static(id="detail")
            yield KeyFooter()

    def on_mount(self) -> None:
        """Read."""
        self._scan(())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Offer only what makes sense at this moment."""
        if action in {"ask_server", "ask_agent", "learn_deeper"} and self._is_scanning:
            return False
        if action in {"toggle_mark", "mark_all", "accept", "learn_deeper"}:
            return bool(self._proposals)
        return True

    # Keys.

    def action_toggle_mark(self) -> None:
        """Mark the proposal, or take the mark away."""
        one = self._selected
        if one is None:
            return
        if one.change is ProposalChange.SAME:
            self.notify("it is stored like that already", markup=False)
            return
        self._marked ^= {one.capability.key}
        self._is_marked_by_hand = True
        self._show_rows()
        self._table.move_by(1)

    def action_mark_all(self) -> None:
        """Mark all that would change something; when all are, none."""
        all_keys = {one.capability.key for one in self._proposals if one.change is not ProposalChange.SAME}
        self._marked = set() if self._marked == all_keys else all_keys
        self._is_marked_by_hand = True
        self._show_rows()

    def action_accept(self) -> None:
        """Store what is marked; without a mark, what is under the cursor."""
        chosen = [one for one in self._proposals if one.capability.key in self._marked]
        selected = self._selected
        if not chosen and selected is not None and selected.change is not ProposalChange.SAME:
            chosen = [selected]
        if not chosen:
            self.notify("nothing of it is new", markup=False)
        elif not self._is_over and not self._is_scanning:
            self._work(self._accept(chosen), name="accept")

    def action_learn_deeper(self) -> None:
        """Read the help of the subcommand under the cursor, which names its own options and subcommands."""
        one = self._selected
        words = () if one is None else subcommand_of(one)
        if words:
            self._scan(words)
        else:
            self.notify("this is the program itself, and its help is read", markup=False)

    def action_ask_server(self) -> None:
        """Start the program as a server of tools (MCP) and ask which it has."""
        self._sources = tuple(dict.fromkeys((*self._sources, CapabilitySource.SCAN_MCP)))
        self._scan(())

    def action_ask_agent(self) -> None:
        """Let an AI agent of the registry describe the program; the person chooses which."""
        self._work(self._choose_agent(), name="choose agent")

    def action_cancel(self) -> None:
        """Leave without storing anything; it asks first when something was marked by hand."""
        if not (self._is_marked_by_hand and self._marked):
            self._end(None)
            return
        from agentmon.screens.dialogs.confirm import ConfirmDialog  # noqa: PLC0415 - needed on this way only

        count = len(self._marked)
        loss = f"{count} marked proposal{'' if count == 1 else 's'} would not be stored."
        self.app.push_screen(ConfirmDialog("Leave without accepting?", loss=loss, yes="Leave"), self._leave_if)

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Mark what was clicked twice."""
        message.stop()
        self.action_toggle_mark()

    def on_row_table_highlighted(self, message: RowTable.Highlighted) -> None:
        """Show the whole of the proposal."""
        message.stop()
        self._show_detail()

    # Inside.

    @property
    def _table(self) -> RowTable:
        return self.query_one("#proposals", RowTable)

    @property
    def _selected(self) -> CapabilityProposal | None:
        key = self._table.selected_key
        return next((one for one in self._proposals if one.capability.key == key), None)

    def _work(self, work: Coroutine[None, None, None], *, name: str) -> None:
        _working: Worker[None] = self.run_worker(work, name=name, group=name, exclusive=True, exit_on_error=False)

    def _scan(self, subcommand: Sequence[str]) -> None:
        self._is_scanning = True
        self._problems = []
        self._progress = "reading"
        self._tell()
        self.refresh_bindings()
        self._work(self._read(tuple(subcommand)), name="scan")

    async def _read(self, subcommand: tuple[str, ...]) -> None:
        try:
            found = await self._services.capability_scans.scan(
                self._agent.slug,
                self._sources,
                subcommand=subcommand,
                on_progress=self._note_progress,
                on_problem=self._problems.append,
                ask=self._asked,
                actor=self._services.actor,
            )
        except AgentmonError as error:
            self._problems.append(f"{error}; {error.hint}" if error.hint else str(error))
            found = ()
        finally:
            self._is_scanning = False
            self._progress = ""
            if self.is_attached:
                self._tell()
        self._take(found, is_deeper=bool(subcommand))

    def _take(self, found: Sequence[CapabilityProposal], *, is_deeper: bool) -> None:
        """Show what was found; deeper looks add to what is there, and take the place of what they know better."""
        known = {one.capability.key: one for one in self._proposals} if is_deeper else {}
        known |= {one.capability.key: one for one in found}
        self._proposals = tuple(known.values())
        if not self._is_marked_by_hand:
            self._marked = {one.capability.key for one in self._proposals if is_worth_it(one)}
        self._marked &= set(known)
        self._show_rows()
        if is_deeper and found:
            key = found[0].capability.key
            self._table.move_to(next(at for at, row in enumerate(self._table.rows) if row.key == key))
        self._show_detail()
        self.refresh_bindings()

    def _note_progress(self, progress: ScanProgress) -> None:
        count = f" {progress.done:,} of {progress.total:,}" if progress.total else ""
        self._progress = f"{progress.step}{count}"
        self._tell()

    async def _accept(self, chosen: Sequence[CapabilityProposal]) -> None:
        try:
            agent = await self._services.capability_scans.accept(self._agent.slug, chosen, actor=self._services.actor)
        except AgentmonError as error:
            words = f"{error}\n{error.hint}" if error.hint else str(error)
            self.notify(f"Not stored: {words}", severity="warning", timeout=8, markup=False)
            # Somebody else changed the agent meanwhile: what a proposal would do is another thing now.
            self._scan(())
            return
        count = len(chosen)
        asks = sum(one.capability.danger_level >= DangerLevel.DANGEROUS for one in chosen)
        more = f"; {asks} of them ask{'s' if asks == 1 else ''} before it starts" if asks else ""
        self.notify(f"{count} capabilit{'y is' if count == 1 else 'ies are'} stored{more}", markup=False)
        self._end(agent)

    async def _choose_agent(self) -> None:
        from agentmon.screens.dialogs.menu_dialog import MenuDialog, MenuEntry  # noqa: PLC0415 - needed on this way only

        agents = [one for one in await self._services.agents.list() if one.session_config is not None]
        if not agents:
            self.notify("there is no AI agent to ask", severity="warning", markup=False)
            return
        entries = [MenuEntry("agent", one.slug) for one in agents]
        heading = f"Which agent describes {self._agent.name}? It costs what a short conversation costs."
        chosen = await self.app.push_screen_wait(MenuDialog(heading, entries, free_kind="agent"))
        if chosen is None:
            return
        self._asked = chosen.word
        self._sources = tuple(dict.fromkeys((*self._sources, CapabilitySource.LLM_GENERATED)))
        self._scan(())

    def _show_rows(self) -> None:
        self._table.rows = proposal_rows(self._proposals, self._marked)
        self._tell()

    def _show_detail(self) -> None:
        one = self._selected
        text = Content("")
        if one is not None:
            text = proposal_detail(one, preview_of(self._agent, one.capability))
        self.query_one("#detail", Static).update(text)

    def _tell(self) -> None:
        """Say what is going on, or what was found where."""
        if self._is_scanning:
            told = Content.styled(f"◌ {even_line(self._progress)}…", "$secondary")
        elif self._proposals:
            new = sum(one.change is ProposalChange.NEW for one in self._proposals)
            changed = sum(one.change is ProposalChange.CHANGED for one in self._proposals)
            counts = (
                f"{len(self._proposals):,} found · {new:,} new · {changed:,} changed · {len(self._marked):,} marked"
            )
            told = Content.assemble(counts, (f"   asked: {sources_text(self._sources)}", "$text-muted"))
        else:
            told = Content("Nothing was learned. m asks it as a server of tools, A lets an AI agent describe it.")
        problems = [Content.styled(even_lines(words), "$warning") for words in self._problems[:_MOST_PROBLEMS]]
        self.query_one("#told", Static).update(Content("\n").join([told, *problems]))

    def _leave_if(self, is_meant: bool | None) -> None:
        if is_meant:
            self._end(None)

    def _end(self, agent: Agent | None) -> None:
        if not self._is_over:
            self._is_over = True
            self.dismiss(agent)


def is_worth_it(proposal: CapabilityProposal) -> bool:
    """Whether a proposal is marked before the person looks: more is known of it than a name, and nothing is lost."""
    properties = proposal.capability.args_schema.get("properties")
    is_learned = not (isinstance(properties, dict) and set(properties) == {_FREE_WORDS})
    return proposal.change is not ProposalChange.SAME and is_learned


def subcommand_of(proposal: CapabilityProposal) -> tuple[str, ...]:
    """Return the words that choose the proposal's subcommand; none for the program itself."""
    words = []
    for token in proposal.capability.command_tokens:
        if token.startswith("-") or "{{" in token:
            break
        words.append(token)
    return tuple(words)
