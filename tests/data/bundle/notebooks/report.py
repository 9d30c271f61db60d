# Databricks notebook source
# MAGIC %md
# MAGIC The sum of a day.

# COMMAND ----------

# MAGIC %sql
# MAGIC INSERT OVERWRITE sums PARTITION (day = :day)
# MAGIC SELECT sum(amount) FROM orders WHERE day = :day
