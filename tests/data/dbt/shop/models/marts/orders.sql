{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='id',
    partition_by='day'
) }}
select id, customer, amount, day, loaded_at
from {{ ref('stg_events') }}
where kind = 'order'
{% if is_incremental() %}
  and loaded_at > (select max(loaded_at) from {{ this }})
{% endif %}
