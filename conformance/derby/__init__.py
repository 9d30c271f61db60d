"""The engine derby: Apache Derby, which is among PySpark's jars, in a JVM of its own."""
