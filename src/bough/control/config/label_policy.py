"""The label policy: which labels workflows should have, with which values, as in OSMO. Pure.

It applies to submissions. Workflows that were accepted before keep running when it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bough.errors import Invalid
from bough.formats.workflow.values import MAXIMUM_LABELS, label_key_fault, label_value_fault
from bough.model.labels import LabelEnforcement, LabelPolicy, LabelsConfig

#: Limits: values of one key, and characters of a message and of the prefix.
MOST_VALUES = 1_000
LONGEST_MESSAGE = 256
LONGEST_PREFIX = 253
_SHOWN = 10


def config_fault(config: LabelsConfig) -> str | None:
    """What is wrong with a policy, with its field; `None`: nothing."""
    if len(config.policy) > MAXIMUM_LABELS:
        # A workflow cannot have more labels than this.
        return f"policy: has {len(config.policy)} keys; at most {MAXIMUM_LABELS} are possible"
    keys: set[str] = set()
    for number, rule in enumerate(config.policy):
        if rule.key in keys:
            return f"policy[{number}].key: {rule.key!r} is there twice"
        keys.add(rule.key)
        for fault in _rule_faults(rule):
            return f"policy[{number}].{fault}"
    prefix = config.pod_label_prefix
    if len(prefix) > LONGEST_PREFIX:
        return f"pod_label_prefix: has more than {LONGEST_PREFIX} characters"
    fault = label_key_fault(f"{prefix}key")
    return None if fault is None else f"pod_label_prefix: with it, {fault}"


def _rule_faults(rule: LabelPolicy) -> Iterator[str]:
    fault = label_key_fault(rule.key)
    if fault is not None:
        yield f"key: {fault}"
    if len(rule.allow_list) > MOST_VALUES:
        values = len(rule.allow_list)
        yield f"allow_list: has {values:,} values; at most {MOST_VALUES:,} are possible"
    for number, value in enumerate(rule.allow_list):
        fault = label_value_fault(value)
        if fault is not None:
            yield f"allow_list[{number}]: {fault}"
    if len(rule.assert_message) > LONGEST_MESSAGE:
        yield f"assert_message: has more than {LONGEST_MESSAGE} characters"
    if not rule.assert_message.isprintable():
        yield "assert_message: must be one line of text"


def refuse_labels(labels: Mapping[str, str], config: LabelsConfig) -> None:
    """Refuse labels that the policy does not allow, or that pods could not have."""
    for key in labels:
        merged = config.pod_label_prefix + key
        fault = label_key_fault(merged)
        if fault is not None:
            raise Invalid(
                f"The workflow cannot have the label {key!r}: on pods it would be {merged!r}, as "
                f"pod_label_prefix is {config.pod_label_prefix!r}, and {fault}."
            )
    for message in _messages(labels, config, LabelEnforcement.ENFORCE):
        raise Invalid(message)


def label_warnings(labels: Mapping[str, str], config: LabelsConfig) -> tuple[str, ...]:
    """Warnings of the policy about labels that it does not refuse."""
    return tuple(_messages(labels, config, LabelEnforcement.WARN))


def labels_on_pods(labels: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Labels as pods have them.

    A label that was accepted under another prefix, and would be invalid with this one, stays as it
    is.
    """
    merged = {key: prefix + key for key in labels}
    return {
        key if label_key_fault(merged[key]) is not None else merged[key]: value
        for key, value in labels.items()
    }


def _messages(
    labels: Mapping[str, str], config: LabelsConfig, enforcement: LabelEnforcement
) -> Iterator[str]:
    for rule in config.policy:
        if rule.enforcement is not enforcement:
            continue
        text = _message(rule, labels.get(rule.key))
        if text is not None:
            yield f"{text} {rule.assert_message}" if rule.assert_message else text


def _message(rule: LabelPolicy, value: str | None) -> str | None:
    """What a rule says about the value of its label; `None`: the value is fine."""
    strict = rule.enforcement is LabelEnforcement.ENFORCE
    if value is None:
        label = f"required label {rule.key!r}" if strict else f"label {rule.key!r}"
        how = f"add it to its labels, or --label {rule.key}=VALUE"
        return f"The workflow is missing {label}: {how}{_allowed(rule, '. ')}."
    if not rule.allow_list or value in rule.allow_list:
        return None
    return f"The label {rule.key!r} is {value!r}, which is not allowed{_allowed(rule, ': ')}."


def _allowed(rule: LabelPolicy, before: str) -> str:
    if not rule.allow_list:
        return ""
    shown = ", ".join(rule.allow_list[:_SHOWN])
    more = len(rule.allow_list) - _SHOWN
    verb = "Allowed are" if before == ". " else "allowed are"
    return f"{before}{verb} {shown}" + (f" and {more} more" if more > 0 else "")
