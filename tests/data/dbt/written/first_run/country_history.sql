        create or replace table dev.country_history
    using delta
      as
    select *,
        md5(coalesce(cast(id as string ), '')
         || '|' || coalesce(cast(
    current_timestamp()
 as string ), '')
        ) as dbt_scd_id,
    current_timestamp()
 as dbt_updated_at,
    current_timestamp()
 as dbt_valid_from,
  coalesce(nullif(
    current_timestamp()
,
    current_timestamp()
), null)
  as dbt_valid_to
from (
select id, country from raw.customers
    ) sbq
