# SPDX-License-Identifier: Apache-2.0
"""Plants known causes in front of the whole system, one at a time, and compares what the timelines name with what was planted."""
