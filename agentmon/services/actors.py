"""Who asks: the person at this machine."""

from __future__ import annotations

from typing import Final

from agentmon.domain.events import Actor, ActorType
from agentmon.domain.ids import LOCAL_USER_ID

USER_ACTOR: Final = Actor(type=ActorType.USER, id=LOCAL_USER_ID)
