"""The structured perceptron, linear and kernel, and its tasks."""

from rankcore.structured.kernel import KernelStructuredPerceptron
from rankcore.structured.ordinal_tasks import CuSumTask, PRankTask
from rankcore.structured.perceptron import StructuredPerceptron
from rankcore.structured.task import KernelTask, Task

__all__ = [
    "CuSumTask",
    "KernelStructuredPerceptron",
    "KernelTask",
    "PRankTask",
    "StructuredPerceptron",
    "Task",
]
