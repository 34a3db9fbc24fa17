"""The objective over samples that lie in shards: a coordinator that sees numbers, and shards that see samples."""

from __future__ import annotations

from rankhinge.objective.sharded.coordinator import ShardedObjective
from rankhinge.objective.sharded.engine import Engine, LocalEngine, Operation, ShardsLostError, execute, forget
from rankhinge.objective.sharded.shard import Shard

__all__ = ["Engine", "LocalEngine", "Operation", "Shard", "ShardedObjective", "ShardsLostError", "execute", "forget"]
