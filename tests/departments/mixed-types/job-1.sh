# jobgen slurm --site ./site.toml --nodes 2 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=6
#SBATCH --gpus-per-node=2080ti:8
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=gpu
# jobgen: note: queue gpu of mixed-types: the job gets 4 nodes with 8 x 2080ti, 48 cores, 190000M, features turing; --gpus-per-node TYPE:N or --constraint chooses others: 2 nodes with 4 x a100, 128 cores, 1000000M, features ampere
# jobgen: note: the launcher is srun, that of site site
