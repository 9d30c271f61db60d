"""The engine derby: Apache Derby, from PySpark's jars, in a JVM of its own."""
