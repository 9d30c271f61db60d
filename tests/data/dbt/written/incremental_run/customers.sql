    -- back compat for old kwarg name
  merge into dev.customers as DBT_INTERNAL_DEST
      using customers__dbt_tmp as DBT_INTERNAL_SOURCE
      on
              DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id
      when matched then update set
            `id` = DBT_INTERNAL_SOURCE.`id`,
            `name` = DBT_INTERNAL_SOURCE.`name`,
            `country` = DBT_INTERNAL_SOURCE.`country`,
            `updated_at` = DBT_INTERNAL_SOURCE.`updated_at`
      when not matched then insert *
