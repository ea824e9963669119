"""The structured perceptron, and the tasks it learns."""

from rankcore.structured.ordinal_tasks import CuSumTask, PRankTask
from rankcore.structured.perceptron import StructuredPerceptron
from rankcore.structured.task import Task

__all__ = ["CuSumTask", "PRankTask", "StructuredPerceptron", "Task"]
