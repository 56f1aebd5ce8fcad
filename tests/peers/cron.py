"""The next slots of cron lines, by the packages cronsim and croniter: JSON lines in, JSON lines out. A slot is in seconds since 1970."""

import json
import sys
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

for line in sys.stdin:
    asked = json.loads(line)
    start = datetime.fromtimestamp(asked["start"], timezone.utc).astimezone(ZoneInfo(asked["zone"]))
    simulated = CronSim(asked["line"], start)
    iterated = croniter(asked["line"], start)
    answer = {"cronsim": [], "croniter": []}
    for _ in range(asked["count"]):
        answer["cronsim"].append(int(next(simulated).timestamp()))
        answer["croniter"].append(int(iterated.get_next(float)))
    print(json.dumps(answer), flush=True)
