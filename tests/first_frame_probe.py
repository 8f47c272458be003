"""Run by a test in a terminal of its own: writes which modules were there when the first frame was painted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.app import AgentmonApp
from agentmon.paths import find_paths

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.screen import Screen


class ProbedApp(AgentmonApp):
    """Notes the modules at the first paint, and leaves once the services are open."""

    report_file: Path
    modules: list[str] | None = None

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if renderable is not None and not self._batch_count and self.modules is None:
            self.modules = sorted(sys.modules)
        super()._display(screen, renderable)

    async def _leave_when_open(self) -> None:
        await self.services()
        self.report_file.write_text(json.dumps({"first_frame": self.modules, "later": sorted(sys.modules)}))
        self.exit()

    def on_mount(self) -> None:
        self.run_worker(self._leave_when_open(), exit_on_error=False)


def main() -> None:
    app = ProbedApp(find_paths(), Path(sys.argv[1]))
    app.report_file = Path(sys.argv[2])
    app.run()


if __name__ == "__main__":
    main()
