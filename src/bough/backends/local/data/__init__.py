"""Files of tasks: where they are kept, and how they are copied and removed.

The supervisor hands in copies to make; files of users are never trusted.

results               reads what completed tasks left behind
locations             the folders of results and of URLs
copying               copies files, bounded and whole
object_store_copying  copies folders from object stores, and to them
walking               finds the files below a folder
disk_usage            how much disk a task's folders take
file_name_patterns    which file names match a user's regular expression
removal               removes folders, however deep
paths                 opens users' paths without following links
"""
