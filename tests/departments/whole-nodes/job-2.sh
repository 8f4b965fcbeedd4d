# jobgen slurm --site ./site.toml --nodes 1 --queue small -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=14
#SBATCH --gpus-per-node=8
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=small
# jobgen: note: the launcher is srun, that of site site
