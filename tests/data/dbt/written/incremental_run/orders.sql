    -- back compat for old kwarg name
  merge into dev.orders as DBT_INTERNAL_DEST
      using orders__dbt_tmp as DBT_INTERNAL_SOURCE
      on
              DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id
      when matched then update set
         *
      when not matched then insert *
