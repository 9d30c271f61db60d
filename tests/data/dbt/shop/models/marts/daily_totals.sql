{{ config(
    materialized='incremental',
    incremental_strategy='insert_overwrite',
    partition_by='day'
) }}
select customer, count(*) as orders, sum(amount) as amount, day
from {{ ref('paid') }}
{% if is_incremental() %}
where day >= date '2026-01-01'
{% endif %}
group by customer, day
