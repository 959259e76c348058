"""Logs of attempts.

They are files in the attempt's folder.

log_writer  output of a task into records on the disk, by the supervisor
log_reader  records into lines for the server
"""
