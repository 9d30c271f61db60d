-- Databricks notebook source
-- MAGIC %md
-- MAGIC Once a week.

-- COMMAND ----------

OPTIMIZE orders

-- COMMAND ----------

OPTIMIZE sums
