"""A server made with FastMCP: a slow, a failing, a progress-reporting and a task tool. The argument `http PORT` makes it an HTTP server."""
import asyncio, sys

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp_tasks import TasksExtension

mcp = FastMCP("workshop")
mcp.add_extension(TasksExtension())


@mcp.tool(annotations={"readOnlyHint": True})
async def slow(seconds: float) -> str:
    """Answers after some time."""
    await asyncio.sleep(seconds)
    return "slowly done"


@mcp.tool
async def failing(reason: str) -> str:
    """Fails."""
    raise ToolError(f"it broke: {reason}")


@mcp.tool
async def reporting(context: Context, steps: int) -> str:
    """Reports its progress, for longer than a call may take without any."""
    for step in range(steps):
        await context.report_progress(step, steps)
        await asyncio.sleep(0.5)
    return f"{steps} steps done"


@mcp.tool(task=True)
async def background(text: str) -> str:
    """Goes on in the background."""
    await asyncio.sleep(0.5)
    return f"in the background: {text}"


if sys.argv[1:2] == ["http"]:
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
else:
    mcp.run(show_banner=False)
