    -- back compat for old kwarg name
  merge into dev.recent_orders as DBT_INTERNAL_DEST
      using recent_orders__dbt_tmp as DBT_INTERNAL_SOURCE
      on DBT_INTERNAL_DEST.day = date '2026-01-02' and
                  DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id
               and
                  DBT_INTERNAL_SOURCE.day = DBT_INTERNAL_DEST.day
      when matched then update set
            amount = DBT_INTERNAL_SOURCE.amount
      when not matched then insert *
